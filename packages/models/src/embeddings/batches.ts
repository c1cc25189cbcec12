// Many texts in few requests: split by number and size, sent concurrently, reassembled in order.
import { estimateTokens, ModelError, noUsage, type Usage } from '@oxbow/core'
import { normaliseUsage, tellsUsage } from '../accounting/usage.ts'
import { type RetryOptions, retrying } from '../around/retry.ts'
import type { ErrorContext } from '../failures/provider-errors.ts'
import type { Embeddings } from './embedder.ts'

export interface BatchLimits {
  /** Texts in one request. */
  readonly texts: number
  /** Their estimated tokens. A single longer text goes alone. */
  readonly tokens: number
  /** Concurrent requests. */
  readonly concurrency: number
}

export interface Batch {
  readonly texts: readonly string[]
  /** The index of its first text among all texts. */
  readonly start: number
}

/** The result of one request. `usage` as the provider reported it. */
export interface BatchAnswer {
  readonly vectors: Float32Array[]
  readonly usage: unknown
}

export interface Batching {
  readonly context: ErrorContext
  readonly limits: BatchLimits
  readonly retry?: RetryOptions | undefined
  readonly signal: AbortSignal | undefined
  ask(texts: readonly string[], signal: AbortSignal): Promise<BatchAnswer>
}

export async function embedInBatches(texts: readonly string[], batching: Batching): Promise<Embeddings> {
  const empty = texts.findIndex((text) => text.trim() === '')
  if (empty !== -1)
    throw ofText(empty, 'invalid_request', `Text ${empty} is empty and cannot be embedded. Leave it out.`)
  const vectors: Float32Array[] = Array.from({ length: texts.length })
  let usage = noUsage
  const batches = batchesOf(texts, batching.limits)
  await sideBySide(batches, batching.limits.concurrency, batching.signal, async (batch, signal) => {
    for (const { answer, start, texts } of await askBatch(batch, batching, signal)) {
      for (const [n, vector] of answer.vectors.entries()) vectors[start + n] = vector
      usage = sum(usage, usageOf(answer.usage, texts))
    }
  })
  return { vectors, usage }
}

export function batchesOf(texts: readonly string[], limits: Pick<BatchLimits, 'texts' | 'tokens'>): Batch[] {
  const batches: { texts: string[]; start: number }[] = []
  let tokens = 0
  for (const [n, text] of texts.entries()) {
    const own = estimateTokens(text)
    let batch = batches.at(-1)
    if (!batch || batch.texts.length === limits.texts || tokens + own > limits.tokens) {
      batch = { texts: [], start: n }
      batches.push(batch)
      tokens = 0
    }
    batch.texts.push(text)
    tokens += own
  }
  return batches
}

interface Answered extends Batch {
  readonly answer: BatchAnswer
}

/** A batch that is too long is sent in halves, down to the text that is. */
async function askBatch(batch: Batch, batching: Batching, signal: AbortSignal): Promise<Answered[]> {
  const { texts, start } = batch
  try {
    const answer = await retrying(() => batching.ask(texts, signal), {
      signal,
      ...(batching.retry && { retry: batching.retry }),
    })
    return [{ texts, start, answer }]
  } catch (error) {
    if (!(error instanceof ModelError) || error.code !== 'context_overflow') throw error
    if (texts.length === 1) {
      const { model } = batching.context
      throw ofText(start, 'context_overflow', `Text ${start} is longer than ${model} can read. Shorten it.`, error)
    }
    const half = Math.ceil(texts.length / 2)
    const first = await askBatch({ texts: texts.slice(0, half), start }, batching, signal)
    return [...first, ...(await askBatch({ texts: texts.slice(half), start: start + half }, batching, signal))]
  }
}

/** Runs some tasks at once. The first failure stops the rest and is the one that is thrown. */
async function sideBySide<Item>(
  items: readonly Item[],
  concurrency: number,
  signal: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController()
  const all = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await work(item, all)
  }
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker))
  } catch (error) {
    stop.abort()
    throw error
  }
}

function usageOf(wire: unknown, texts: readonly string[]): Usage {
  if (tellsUsage(wire)) return { ...normaliseUsage(wire), outputTokens: 0 }
  return { ...noUsage, inputTokens: texts.reduce((tokens, text) => tokens + estimateTokens(text), 0), estimated: true }
}

const sum = (a: Usage, b: Usage): Usage => ({
  ...a,
  inputTokens: a.inputTokens + b.inputTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  estimated: a.estimated || b.estimated,
})

const ofText = (index: number, code: ModelError['code'], message: string, cause?: ModelError): ModelError =>
  new ModelError(code, message, {
    details: { ...cause?.details, index },
    ...(cause?.status === undefined ? {} : { status: cause.status }),
    ...(cause ? { cause } : {}),
  })
