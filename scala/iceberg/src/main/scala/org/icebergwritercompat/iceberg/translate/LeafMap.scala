package org.icebergwritercompat.iceberg.translate

import java.lang.{Integer => JInteger}
import java.util.{AbstractMap, AbstractSet, Arrays, Iterator => JIterator, Map => JMap, Set => JSet}

/**
 * What is known of columns, by their ids: an array instead of a hash table, because publishing
 * makes four of these for each file.
 *
 * @param ids
 *   the ids of all columns that may be in it, ascending; shared by all maps of a table
 */
private[translate] final class LeafMap[V <: AnyRef](ids: Array[JInteger])
    extends AbstractMap[JInteger, V] {

  private val slots = new Array[AnyRef](ids.length)

  private var known = 0

  /** Sets what is known of the column at a position in the ids; null for nothing. */
  def set(position: Int, value: V): Unit = {
    if (slots(position) != null) known -= 1
    if (value != null) known += 1
    slots(position) = value
  }

  /** Sets the same for every column. */
  def fill(value: V): Unit = {
    Arrays.fill(slots, value)
    known = slots.length
  }

  /** What is known of the column at a position in the ids; null for nothing. */
  def at(position: Int): V = slots(position).asInstanceOf[V]

  override def clear(): Unit = if (known > 0) {
    Arrays.fill(slots, null)
    known = 0
  }

  override def size: Int = known

  override def get(key: Any): V = key match {
    case id: JInteger =>
      val position = Arrays.binarySearch(ids.asInstanceOf[Array[AnyRef]], id)
      if (position < 0) null.asInstanceOf[V] else at(position)
    case _ => null.asInstanceOf[V]
  }

  override def containsKey(key: Any): Boolean = get(key) != null

  override def entrySet: JSet[JMap.Entry[JInteger, V]] =
    new AbstractSet[JMap.Entry[JInteger, V]] {

      override def size: Int = known

      override def iterator: JIterator[JMap.Entry[JInteger, V]] =
        new JIterator[JMap.Entry[JInteger, V]] {

          private var position = nextFrom(0)

          override def hasNext: Boolean = position < ids.length

          override def next(): JMap.Entry[JInteger, V] = {
            if (!hasNext) throw new NoSuchElementException
            val entry = new AbstractMap.SimpleImmutableEntry(ids(position), at(position))
            position = nextFrom(position + 1)
            entry
          }
        }
    }

  private def nextFrom(position: Int): Int = {
    var next = position
    while (next < ids.length && slots(next) == null) next += 1
    next
  }
}
