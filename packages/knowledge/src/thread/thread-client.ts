// The main thread's side of a thread that holds the database.
import { Worker } from 'node:worker_threads'
import type { Embed } from '../embedder.ts'
import { KnowledgeError, messageOf } from '../errors.ts'
import type { IndexProgress } from '../progress.ts'
import type { FromThread, Requests, ToThread } from './protocol.ts'

export interface ThreadClient {
  /** Rejects with a KnowledgeError. */
  ask<Name extends keyof Requests>(
    name: Name,
    ...argument: Parameters<Requests[Name]>
  ): Promise<ReturnType<Requests[Name]>>
  /** Requests an early end of everything that runs. */
  cancel(): void
  close(): Promise<void>
}

/** Node runs the .ts sources directly; the build writes .js files. */
const threadFile = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./thread.js', import.meta.url)

export function startThread(
  path: string,
  host: { readonly embed?: Embed; readonly progress?: (progress: IndexProgress) => void } = {},
): ThreadClient {
  const worker = new Worker(threadFile, { workerData: { path }, name: 'oxbow-knowledge', execArgv: [] })
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let count = 0
  let ended: KnowledgeError | undefined
  /** close() waits for the end, even while a request is still being answered. */
  let closing = false
  const post = (message: ToThread): void => worker.postMessage(message)
  // Only an open question keeps the process alive.
  worker.unref()

  function settled(id: number): PromiseWithResolvers<unknown> | undefined {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (waiting.size === 0 && !closing) worker.unref()
    return waiter
  }
  function end(error: KnowledgeError): void {
    ended ??= error
    for (const it of waiting.values()) it.reject(ended)
    waiting.clear()
  }
  async function embed(texts: readonly string[]): Promise<void> {
    try {
      if (host.embed === undefined) throw new Error('there is no embedder')
      post({ type: 'embedded', vectors: await host.embed(texts) })
    } catch (error) {
      const details = (error as { details?: { index?: number } } | undefined)?.details
      post({ type: 'embedding.failed', message: messageOf(error), index: details?.index })
    }
  }

  worker.on('message', (message: FromThread) => {
    switch (message.type) {
      case 'answer':
        return settled(message.id)?.resolve(message.value)
      case 'error':
        return settled(message.id)?.reject(new KnowledgeError(message.code, message.message))
      case 'progress':
        return host.progress?.(message.progress)
      case 'embed':
        return void embed(message.texts)
    }
  })
  worker.on('error', (error) =>
    end(new KnowledgeError('index_unusable', `The index has failed: ${messageOf(error)}`, { cause: error })),
  )
  worker.on('exit', () => end(new KnowledgeError('closed', 'The knowledge base is closed.')))

  return {
    ask(name, ...argument) {
      if (ended !== undefined) return Promise.reject(ended)
      const answer = Promise.withResolvers<unknown>()
      count += 1
      waiting.set(count, answer)
      worker.ref()
      post({ type: 'request', id: count, name, argument: argument[0] })
      return answer.promise as Promise<ReturnType<Requests[typeof name]>>
    },
    cancel: () => post({ type: 'cancel' }),
    async close() {
      if (ended !== undefined) return
      closing = true
      const exited = Promise.withResolvers<void>()
      worker.once('exit', () => exited.resolve())
      worker.ref()
      post({ type: 'close' })
      await exited.promise
    },
  }
}
