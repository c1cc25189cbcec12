// The main thread's side of the writer thread.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { OxbowError } from '@oxbow/core'
import { closedError } from '../keys.ts'
import { storageError } from './errors.ts'
import type { FromThread, ToThread, Write } from './protocol.ts'

export interface Writer {
  /** Writes durably. Resolves with the answer (see protocol.ts), rejects with an OxbowError and then nothing is stored. */
  write(write: Write): Promise<number>
  /** Waits for what was written, empties the log into the file and ends the thread. */
  close(): Promise<void>
}

interface Waiter {
  resolve(answer: number): void
  reject(error: OxbowError): void
}

/** Node runs the sources as they are; the build writes .js beside what was .ts. */
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)

export function startWriter(path: string, name: string): Writer {
  const worker = new Worker(threadFile, { workerData: { path }, name: 'oxbow-sqlite' })
  // An idle back end must not keep the process alive; while something is under way the process waits for it.
  worker.unref()
  let queued: Write[] = []
  let waiting: Waiter[] = []
  let answered = 0
  let ended: OxbowError | undefined

  const post = (message: ToThread) => worker.postMessage(message)

  function flush(): void {
    if (queued.length === 0 || ended !== undefined) return
    post(queued)
    queued = []
  }

  function settle(message: FromThread): void {
    if ('wake' in message) return
    for (const answer of message) {
      const waiter = waiting[answered]!
      answered += 1
      if (typeof answer === 'number') waiter.resolve(answer)
      else waiter.reject(storageError(path, answer))
    }
    if (answered === waiting.length) worker.unref()
    // Cut off now and then only: shifting the array for every answer would cost its length each time.
    if (answered === waiting.length || answered > 1_000) {
      waiting = waiting.slice(answered)
      answered = 0
    }
  }

  function end(error: OxbowError): void {
    ended ??= error
    for (const waiter of waiting.slice(answered)) waiter.reject(ended)
    waiting = []
    answered = 0
    queued = []
  }

  worker.on('message', settle)
  worker.on('error', (error) => end(storageError(path, error)))
  worker.on('exit', () =>
    end(
      new OxbowError('storage_error', `The thread that writes ${path} has ended. Start the process again.`, {
        details: { path },
      }),
    ),
  )

  return {
    write(write) {
      if (ended !== undefined) return Promise.reject(ended)
      return new Promise((resolve, reject) => {
        if (waiting.length === answered) worker.ref()
        // One message per turn of the event loop, with all that came in it.
        if (queued.length === 0) setImmediate(flush)
        queued.push(write)
        waiting.push({ resolve, reject })
      })
    },
    async close() {
      if (ended !== undefined) return
      flush()
      worker.ref()
      post('close')
      await once(worker, 'exit')
      ended = closedError(name)
    },
  }
}
