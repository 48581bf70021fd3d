package org.apache.spark.sql.delta.writercompat.install;

import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;

/**
 * Replaces the thread-local that holds every thread's transaction observer.
 *
 * <p>Written in Java because Scala hides the setter; javac checks that it is still there.
 */
final class ThreadObservers {

  private ThreadObservers() {}

  static ThreadLocal<TransactionExecutionObserver> get() {
    return TransactionExecutionObserver$.MODULE$.threadObserver();
  }

  static void set(ThreadLocal<TransactionExecutionObserver> observers) {
    TransactionExecutionObserver$.MODULE$
        .org$apache$spark$sql$delta$ThreadStorageExecutionObserver$_setter_$threadObserver_$eq(
            observers);
  }
}
