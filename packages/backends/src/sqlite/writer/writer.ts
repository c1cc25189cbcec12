// The main thread's side of the writer thread.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { OxbowError } from '@oxbow/core'
import { storageError } from '../errors.ts'
import type { FromWriter, Key, ToWriter, Write } from './protocol.ts'

/**
 * Each commit costs a wait for the disk and about 100 µs of CPU, whatever its size. So while several appends are in
 * flight at once, commits are spaced by this time and batch the appends. A lone session never waits.
 */
const gatherMs = 2
/** How long batching continues after concurrent appends. */
const busyMs = 50

export interface Writer {
  /**
   * Writes durably. Resolves with the answer (see protocol.ts); rejects with an OxbowError, and then nothing is stored.
   */
  write(write: Write): Promise<number>
  /** Calls `wake` soon after another connection has appended to a session with this head. Returns the stop function. */
  watch(key: Key, head: number, wake: () => void): () => void
  /** Waits for pending writes, empties the log into the file and ends the thread. */
  close(): Promise<void>
}

interface Waiter {
  resolve(answer: number): void
  reject(error: OxbowError): void
}

/** Node runs the sources directly; the build writes .js files. */
const threadFile = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./thread.js', import.meta.url)

/**
 * `place` is the result of `placeOf` when the file was opened. `thread` is another thread file, for tests that slow it
 * down or kill it.
 */
export function startWriter(path: string, place: string, thread: URL = threadFile): Writer {
  // Without the process's options: some of them, like --input-type, would keep the thread from starting.
  const worker = new Worker(thread, { workerData: { path, place }, name: 'oxbow-sqlite', execArgv: [] })
  const watching = new Map<number, () => void>()
  let watches = 0
  let queued: Write[] = []
  // All unanswered writes in order. Those before `answered` are finished.
  let waiting: Waiter[] = []
  let answered = 0
  let flushedAt = 0
  let busyUntil = 0
  let ended: OxbowError | undefined

  const post = (message: ToWriter) => worker.postMessage(message)

  /** At most one message per turn of the event loop, with everything that arrived in it. */
  function schedule(): void {
    const now = performance.now()
    const waitMs = flushedAt + gatherMs - now
    if (waitMs > 0 && now < busyUntil) setTimeout(flush, waitMs)
    else setImmediate(flush)
  }

  function flush(): void {
    if (queued.length === 0) return
    flushedAt = performance.now()
    if (waiting.length - answered > 1) busyUntil = flushedAt + busyMs
    post({ writes: queued })
    queued = []
  }

  function receive(message: FromWriter): void {
    if ('wake' in message) {
      for (const id of message.wake) watching.get(id)?.()
      return
    }
    for (const answer of message.answers) {
      const waiter = waiting[answered]!
      answered += 1
      if (typeof answer === 'number') waiter.resolve(answer)
      else waiter.reject(storageError(path, answer))
    }
    if (answered === waiting.length) worker.unref()
    // Trimmed only occasionally: trimming for every answer would cost the length of the array each time.
    if (answered === waiting.length || answered > 1_000) {
      waiting = waiting.slice(answered)
      answered = 0
    }
  }

  /**
   * Rejects everything that waits for a dead thread. Writes in flight may have been stored, so this is not a plain
   * failure.
   */
  function end(reason: string, cause?: unknown): void {
    // SQLite failed before the first write: the file is damaged or cannot be opened, and nothing was stored.
    if (cause instanceof Error && 'errcode' in cause) ended ??= storageError(path, cause)
    ended ??= new OxbowError(
      'storage_error',
      `The thread that writes ${path} has ended (${reason}). Writes in flight may or may not be stored. Restart the process.`,
      { details: { path, reason }, cause },
    )
    for (const waiter of waiting.slice(answered)) waiter.reject(ended)
    waiting = []
    answered = 0
    queued = []
    watching.clear()
  }

  worker.on('message', receive)
  worker.on('error', (error) => end(error.message, error))
  worker.on('exit', (code) => end(`exit code ${code}`))
  // An idle back end must not keep the process alive; while something is under way the process waits for it. Not
  // earlier: listening to messages takes a hold of its own.
  worker.unref()

  return {
    write(write) {
      if (ended !== undefined) return Promise.reject(ended)
      return new Promise((resolve, reject) => {
        if (waiting.length === answered) worker.ref()
        if (queued.length === 0) schedule()
        queued.push(write)
        waiting.push({ resolve, reject })
      })
    },
    watch(key, head, wake) {
      watches += 1
      const id = watches
      watching.set(id, wake)
      post({ watch: id, key, head })
      return () => {
        if (watching.delete(id)) post({ unwatch: id })
      }
    },
    async close() {
      if (ended !== undefined) return
      flush()
      worker.ref()
      const exited = once(worker, 'exit')
      post({ close: true })
      await exited.catch((error) => {
        throw storageError(path, error)
      })
    },
  }
}
