package org.icebergwritercompat.contract

/** Which text of the RFC is followed. */
sealed abstract class Profile(val name: String, val statement: String) extends Serializable {

  /** Features this profile accepts beyond those of the default, and why the default does not. */
  def alsoAllowed: Set[String]
}

object Profile {

  /** The session conf that chooses the profile. */
  val Conf = "spark.icebergWriterCompat.profile"

  /** The text of the RFC this project was built on, and the ban on changes below map keys. */
  case object Rfc extends Profile("rfc", "the RFC as first accepted") {
    override def alsoAllowed: Set[String] = Set.empty
  }

  /** What later revisions of the RFC, or Delta Kernel, accept too. */
  case object RfcCurrent extends Profile("rfc-current", "later revisions and Delta Kernel") {
    override def alsoAllowed: Set[String] =
      Set("rowTracking", "checkpointProtection", "typeWidening-preview", "catalogManaged")
  }

  /** All profiles, the default first. */
  val all: Seq[Profile] = Seq(Rfc, RfcCurrent)

  /** The profile of this name. */
  def named(name: String): Option[Profile] = all.find(_.name.equalsIgnoreCase(name.trim))

  /** The profile that accepts a feature which `profile` does not. */
  def accepting(feature: String, profile: Profile): Option[Profile] =
    all.find(other => other != profile && other.alsoAllowed(feature))
}
