package org.icebergwritercompat.contract

/** A version of the RFC that the rules follow. */
sealed abstract class Profile(val name: String, val statement: String) extends Serializable {

  /** The features that this profile accepts in addition to those of the default profile. */
  def alsoAllowed: Set[String]
}

object Profile {

  /** The session conf that chooses the profile. */
  val Conf = "spark.icebergWriterCompat.profile"

  /** The first accepted text of the RFC, and no changes inside map keys. */
  case object Rfc extends Profile("rfc", "the RFC as first accepted") {
    override def alsoAllowed: Set[String] = Set.empty
  }

  /** Also accepts what later revisions of the RFC, or Delta Kernel, accept. */
  case object RfcCurrent extends Profile("rfc-current", "later revisions and Delta Kernel") {
    override def alsoAllowed: Set[String] =
      Set("rowTracking", "checkpointProtection", "typeWidening-preview", "catalogManaged")
  }

  /** All profiles, the default first. */
  val all: Seq[Profile] = Seq(Rfc, RfcCurrent)

  /** The profile with this name. */
  def named(name: String): Option[Profile] = all.find(_.name.equalsIgnoreCase(name.trim))

  /** The profile that accepts a feature which `profile` does not. */
  def accepting(feature: String, profile: Profile): Option[Profile] =
    all.find(other => other != profile && other.alsoAllowed(feature))
}
