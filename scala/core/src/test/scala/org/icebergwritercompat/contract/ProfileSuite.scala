package org.icebergwritercompat.contract

import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{Condition, Location}
import org.icebergwritercompat.rules.{CompliantTable, StepSuite}
import org.icebergwritercompat.rules.CompliantTable.{features, shapes}

class ProfileSuite extends StepSuite {

  private def supporting(feature: String, profile: Profile, shape: CompliantTable.Shape) =
    CompliantTable
      .of(shape.schema)
      .copy(
        protocol = ProtocolState(
          3,
          7,
          Some(Set("columnMapping") ++ readers.intersect(Set(feature))),
          Some(features + feature ++ needed.get(feature))
        ),
        profile = profile
      )

  private val readers = Set("typeWidening-preview", "catalogManaged")

  private val needed =
    Map("rowTracking" -> "domainMetadata", "catalogManaged" -> "inCommitTimestamp")

  // Every difference there is: feature, the rule that the default refuses it by, and its reason.
  private val notListed = "it is not in the RFC's list of allowed features"
  private val differences = Seq(
    ("rowTracking", "A6", "Iceberg writers do not keep row ids"),
    ("checkpointProtection", "A5", notListed),
    ("typeWidening-preview", "A5", notListed),
    ("catalogManaged", "A5", notListed)
  )

  test("the differences between the profiles are these") {
    assert(Profile.all == Seq(Profile.Rfc, Profile.RfcCurrent))
    assert(Profile.Rfc.alsoAllowed == Set.empty)
    assert(Profile.RfcCurrent.alsoAllowed == differences.map(_._1).toSet)
  }

  for (shape <- shapes; (feature, rule, reason) <- differences) {
    test(s"rfc refuses $feature, names rfc-current and the way out, with ${shape.name}") {
      val found = theOne(V1.rules.check(supporting(feature, Profile.Rfc, shape)).toSeq)
      assert(found.rule.id == rule)
      assert(found.condition == Condition.IncompatibleTableFeature)
      assert(found.location == Location.Feature(feature))
      assert(found.remedy.text == s"ALTER TABLE db.t DROP FEATURE $feature")
      assert(
        found.parameters == Map(
          "feature" -> feature,
          "reason" -> (s"$reason; the profile rfc-current accepts it: " +
            "SET spark.icebergWriterCompat.profile=rfc-current")
        )
      )
    }
    test(s"rfc-current accepts $feature with ${shape.name}") {
      assert(V1.rules.check(supporting(feature, Profile.RfcCurrent, shape)).toSeq == Nil)
    }
  }

  // What no profile accepts.
  for {
    profile <- Profile.all
    feature <- V1.contract.features.forbidden.keySet.toSeq.sorted.filterNot(_ == "rowTracking") ++
      Seq("antigravity", "inCommitTimestamps", "materializePartitionColumns")
  } test(s"$profile refuses $feature, and names no other profile") {
    val found = V1.rules
      .check(supporting(feature, profile, shapes.head))
      .filter(v => v.rule.id == "A5" || v.rule.id == "A6")
      .toSeq
    assert(found.map(_.location) == Seq(Location.Feature(feature)))
    assert(!found.head.parameters("reason").contains("profile"))
  }

  for (feature <- readers.toSeq.sorted) {
    test(s"A4 refuses $feature for writers only under rfc-current") {
      val table = CompliantTable
        .of("a INT")
        .copy(
          protocol = ProtocolState(
            3,
            7,
            Some(Set("columnMapping")),
            Some(features + feature ++ needed.get(feature))
          ),
          profile = Profile.RfcCurrent
        )
      assert(
        V1.rules.check(table).map(v => v.rule.id -> v.parameters("found")).toSeq ==
          Seq("A4" -> s"$feature only in writerFeatures")
      )
    }
    test(s"A7 refuses $feature at reader version 2 under rfc-current") {
      val table = CompliantTable
        .of("a INT")
        .copy(
          protocol = ProtocolState(2, 7, None, Some(features + feature ++ needed.get(feature))),
          profile = Profile.RfcCurrent
        )
      assert(
        V1.rules.check(table).map(v => v.rule.id -> v.parameters("found")).toSeq ==
          Seq("A7" -> s"$feature with reader version 2")
      )
    }
  }

  test("a profile is found by its name, in any letters") {
    assert(Profile.named(" RFC ").contains(Profile.Rfc))
    assert(Profile.named("Rfc-Current").contains(Profile.RfcCurrent))
    assert(Profile.named("rfc-seed").isEmpty)
    assert(Profile.named("").isEmpty)
  }
}
