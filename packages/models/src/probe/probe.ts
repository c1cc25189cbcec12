// Tests whether a model works, with small real requests of the kinds that agents make.
import { type Message, type Model, ModelError, type ModelReply, type ModelRequest } from '@oxbow/core'
import { type Circumstances, type Diagnosis, diagnose } from './diagnose.ts'

export interface ProbeCheck {
  readonly name: 'answer' | 'usage' | 'tool call' | 'structured output' | 'clock'
  /** `warning`: works, but not every feature that an agent may use. */
  readonly result: 'ok' | 'warning' | 'failed'
  readonly detail: string
  readonly diagnosis?: Diagnosis
}

export interface Probe extends Circumstances {
  /** Opens the model with this `fetch`. */
  open(fetch: typeof globalThis.fetch): Model
}

/** Beyond this difference, signed requests or certificates may fail. */
const MAX_SKEW_MS = 60_000

/**
 * Tests a model with at most four requests and yields each result as soon as it is known. After a failed answer no
 * further request is made.
 *
 * @example
 * for await (const check of probeModel({ open, baseUrl, model: 'gpt-5' }))
 *   console.log(check.name, check.result, check.detail)
 */
export async function* probeModel(probe: Probe, signal: AbortSignal): AsyncGenerator<ProbeCheck> {
  let skewMs: number | undefined
  const model = probe.open(async (...request) => {
    const response = await fetch(...request)
    const date = Date.parse(response.headers.get('date') ?? '')
    if (!Number.isNaN(date)) skewMs = Date.now() - date
    return response
  })
  const ask = (request: Partial<ModelRequest>) => timed(model, request, signal)
  const failed = (name: ProbeCheck['name'], error: unknown): ProbeCheck => {
    if (!(error instanceof ModelError)) throw error
    return { name, result: 'failed', detail: error.message, diagnosis: diagnose(error, probe) }
  }

  try {
    const { reply, firstMs, totalMs } = await ask({ messages: [said('Answer with the one word: ready')] })
    const first = firstMs === undefined ? 'no text' : `first words after ${firstMs} ms`
    const what = `${first}, ${totalMs} ms in all, by ${reply.model}`
    yield { name: 'answer', result: firstMs === undefined ? 'warning' : 'ok', detail: what }
    yield usageCheck(reply)
  } catch (error) {
    yield failed('answer', error)
    if (skewMs !== undefined) yield clockCheck(skewMs)
    return
  }
  try {
    yield await toolCheck(ask)
  } catch (error) {
    yield failed('tool call', error)
  }
  try {
    yield await outputCheck(ask)
  } catch (error) {
    // Agents without structured output still work.
    yield { ...failed('structured output', error), result: 'warning' }
  }
  if (skewMs !== undefined) yield clockCheck(skewMs)
}

type Ask = (request: Partial<ModelRequest>) => ReturnType<typeof timed>

async function timed(model: Model, request: Partial<ModelRequest>, signal: AbortSignal) {
  const startedAt = performance.now()
  let firstMs: number | undefined
  const reply = await model.generate(
    { system: '', messages: [], tools: [], ...request },
    {
      signal,
      onDelta: () => {
        firstMs ??= Math.round(performance.now() - startedAt)
      },
    },
  )
  return { reply, firstMs, totalMs: Math.round(performance.now() - startedAt) }
}

function usageCheck({ usage }: ModelReply): ProbeCheck {
  if (usage.estimated)
    return {
      name: 'usage',
      result: 'warning',
      detail: 'not reported by the provider: tokens and limits are estimated',
    }
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  const price = usage.cost === undefined ? 'price not known (set price)' : `$${usage.cost.toPrecision(2)}`
  return { name: 'usage', result: 'ok', detail: `${input} tokens in, ${usage.outputTokens} out, ${price}` }
}

const CODE = 'k7-heron'
const tool = {
  name: 'get_code',
  description: 'Gives the secret code.',
  input: {
    type: 'object',
    properties: { place: { type: 'string', description: 'Where: "here".' } },
    required: ['place'],
  },
}

async function toolCheck(ask: Ask): Promise<ProbeCheck> {
  const name = 'tool call'
  const question = said('Call get_code for the place "here", then tell me the code.')
  const { reply } = await ask({ messages: [question], tools: [tool] })
  const call = reply.blocks.find((it) => it.type === 'call')
  if (call?.type !== 'call')
    return { name, result: 'warning', detail: 'the model answered without calling the requested tool' }
  if (!isObject(call.arguments))
    return { name, result: 'warning', detail: `its arguments are not a JSON object: ${call.arguments.slice(0, 80)}` }
  const blocks = reply.blocks.map((it) =>
    it.type === 'call' ? { ...it, callId: it === call ? 'call-1' : 'call-2' } : it,
  )
  const results = blocks.flatMap((it) =>
    it.type === 'call'
      ? [
          {
            type: 'result' as const,
            callId: it.callId,
            tool: it.tool,
            status: 'success' as const,
            content: [{ type: 'text' as const, text: CODE }],
          },
        ]
      : [],
  )
  const answered = await ask({
    messages: [question, { id: 'a', role: 'assistant', blocks }, { id: 'r', role: 'tool', blocks: results }],
    tools: [tool],
  })
  return textOf(answered.reply).includes(CODE)
    ? { name, result: 'ok', detail: 'called, and its result was used' }
    : { name, result: 'warning', detail: 'called, but the answer does not use its result' }
}

async function outputCheck(ask: Ask): Promise<ProbeCheck> {
  const schema = {
    type: 'object',
    properties: { ready: { type: 'boolean' } },
    required: ['ready'],
    additionalProperties: false,
  }
  const { reply } = await ask({
    messages: [said('Answer with the JSON object {"ready": true}')],
    output: { name: 'state', schema },
  })
  const works = isObject(textOf(reply)) && 'ready' in JSON.parse(textOf(reply))
  return works
    ? { name: 'structured output', result: 'ok', detail: 'JSON as requested' }
    : { name: 'structured output', result: 'warning', detail: 'the answer is not the requested JSON' }
}

function clockCheck(skewMs: number): ProbeCheck {
  const seconds = `${(Math.abs(skewMs) / 1_000).toFixed(0)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the provider's`
  return Math.abs(skewMs) > MAX_SKEW_MS
    ? { name: 'clock', result: 'warning', detail: `this machine's clock is ${seconds}: correct it` }
    : { name: 'clock', result: 'ok', detail: 'in step with the provider’s' }
}

const said = (text: string): Message => ({ id: 'q', role: 'user', blocks: [{ type: 'text', text }] })
const textOf = (reply: ModelReply): string => reply.blocks.map((it) => (it.type === 'text' ? it.text : '')).join('')

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
