package org.icebergwritercompat.bench

import scala.util.Random

/** A number with its bootstrap 95 % confidence interval. */
final case class Estimate(value: Double, low: Double, high: Double) {

  /** Whether the two intervals overlap. */
  def overlaps(other: Estimate): Boolean = low <= other.high && other.low <= high
}

/**
 * Estimates from samples that were taken by turns. The n-th samples of two series are a pair: they
 * were taken under the same load of the machine, so a bootstrap resample draws whole pairs.
 */
object Estimate {

  type Samples = Vector[Double]

  private val resamples = 2000

  def median(values: Seq[Double]): Double = {
    val sorted = values.toArray.sorted
    val middle = sorted.length / 2
    if (sorted.length % 2 == 1) sorted(middle) else (sorted(middle - 1) + sorted(middle)) / 2
  }

  /** The median. */
  def of(samples: Samples): Estimate = bootstrap(Seq(samples))(drawn => median(drawn.head))

  /** The ratio of the medians. */
  def ratio(measured: Samples, baseline: Samples): Estimate =
    bootstrap(Seq(measured, baseline)) { drawn =>
      median(drawn(0)) / median(drawn(1))
    }

  /** The difference of the medians. */
  def difference(measured: Samples, baseline: Samples): Estimate =
    bootstrap(Seq(measured, baseline)) { drawn =>
      median(drawn(0)) - median(drawn(1))
    }

  /** The exponent p of time = c * size^p, by least squares over the medians. */
  def growth(sizes: Seq[Int], samples: Seq[Samples]): Estimate =
    bootstrap(samples) { drawn =>
      val x = sizes.map(size => math.log(size.toDouble))
      val y = drawn.map(sample => math.log(median(sample)))
      val (meanX, meanY) = (x.sum / x.size, y.sum / y.size)
      x.zip(y).map { case (a, b) => (a - meanX) * (b - meanY) }.sum /
        x.map(a => (a - meanX) * (a - meanX)).sum
    }

  private def bootstrap(
      samples: Seq[Samples]
  )(statistic: Seq[Vector[Double]] => Double): Estimate = {
    // A fixed seed, so that the same samples give the same intervals.
    val random = new Random(42)
    val drawn = Vector
      .fill(resamples) {
        val picks = Vector.fill(samples.head.size)(random.nextInt(samples.head.size))
        statistic(samples.map(sample => picks.map(sample)))
      }
      .sorted
    Estimate(
      statistic(samples),
      drawn((resamples * 0.025).toInt),
      drawn((resamples * 0.975).toInt)
    )
  }
}
