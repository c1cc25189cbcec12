// The thread that holds the database. Indexing and searching have one each: SQLite calls block.
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { indexError, openStore } from '../indexing/store.ts'
import { reader } from '../search/reading.ts'
import type { FromThread, Requests, ToThread } from './protocol.ts'

const { path } = workerData as { path: string }
const port = parentPort!
const post = (message: FromThread): void => port.postMessage(message)

/** A thread indexes only once. */
const cancel = new AbortController()
let embedding: PromiseWithResolvers<readonly Float32Array[]> | undefined

type Handlers = {
  [Name in keyof Requests]: (
    ...argument: Parameters<Requests[Name]>
  ) => ReturnType<Requests[Name]> | Promise<ReturnType<Requests[Name]>>
}

const handlersOf = (database: DatabaseSync): Handlers => ({
  ...reader(database),
  // Search does not need parsers.
  async index(job) {
    const { index } = await import('../indexing/indexing.ts')
    return index(database, job, {
      signal: cancel.signal,
      progress: (progress) => post({ type: 'progress', progress }),
      embed(texts) {
        embedding = Promise.withResolvers()
        post({ type: 'embed', texts })
        return embedding.promise
      },
    })
  },
  forget: async (paths) => (await import('../indexing/indexing.ts')).forget(database, paths),
})

let database: DatabaseSync | undefined
let handlers: Handlers | undefined

/** Opened with the first request, so that an unusable file is that request's error. */
function opened(): Handlers {
  database ??= openStore(path)
  handlers ??= handlersOf(database)
  return handlers
}

port.on('message', async (message: ToThread) => {
  switch (message.type) {
    case 'cancel':
      cancel.abort()
      return
    case 'embedded':
      embedding?.resolve(message.vectors)
      return
    case 'embedding.failed':
      embedding?.reject(Object.assign(new Error(message.message), { index: message.index }))
      return
    case 'close':
      database?.close()
      // Ends only the thread; handles left open by a preloaded module must not keep it alive.
      return process.exit()
    case 'request': {
      const { id, name, argument } = message
      try {
        const work = opened()[name] as (argument: unknown) => unknown
        post({ type: 'answer', id, value: await work(argument) })
      } catch (error) {
        const { code, message } = indexError(path, error)
        post({ type: 'error', id, code, message })
      }
    }
  }
})
