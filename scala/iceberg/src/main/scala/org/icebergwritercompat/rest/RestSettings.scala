package org.icebergwritercompat.rest

import java.io.File

/**
 * Where a server listens, and whom it answers.
 *
 * @param token
 *   what clients have to send as bearer token; without one only this machine is listened to
 * @param tls
 *   the files with the certificates and with the key, in PEM
 * @param log
 *   takes one line for each request
 */
final case class RestSettings(
    host: String,
    port: Int,
    token: Option[String],
    tls: Option[(File, File)],
    log: String => Unit,
    limits: RestLimits = RestLimits()
)

/**
 * What a server takes at most.
 *
 * @param workers
 *   requests that are worked on at a time
 * @param waiting
 *   requests that wait for that; what comes beyond is answered with 503
 * @param bodyBytes
 *   the size of a request; 413 beyond
 * @param headerBytes
 *   the size of all headers; 431 beyond
 * @param connections
 *   open connections; more are closed at once
 * @param patienceSeconds
 *   how long a connection may take for its next request, or for taking an answer
 * @param stopSeconds
 *   how long `stop` waits for what is being worked on
 */
final case class RestLimits(
    workers: Int = 16,
    waiting: Int = 256,
    bodyBytes: Int = 16 << 20,
    lineBytes: Int = 8 << 10,
    headerBytes: Int = 16 << 10,
    connections: Int = 2000,
    patienceSeconds: Int = 120,
    stopSeconds: Int = 300
)
