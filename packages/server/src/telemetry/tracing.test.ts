import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memory } from '@oxbow/backends'
import { agent, createEngine, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Script, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createTracing } from './tracing.ts'

interface Span {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceId: string
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[]
  readonly status: { code?: number }
}

/** Receives OTLP over HTTP as JSON. */
async function collector() {
  const bodies: string[] = []
  const paths: (string | undefined)[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    paths.push(request.url)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const spans = (): Span[] =>
    bodies.flatMap((it) =>
      (JSON.parse(it) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }).resourceSpans.flatMap((resource) =>
        resource.scopeSpans.flatMap((scope) => scope.spans),
      ),
    )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, paths, spans }
}

const attribute = ({ attributes }: Span, key: string): unknown => {
  const value = attributes.find((it) => it.key === key)?.value
  return value === undefined ? undefined : Object.values(value)[0]
}

async function turn(endpoint: string, options: { replies?: Script<ScriptedRequest>; traceparent?: string } = {}) {
  const server = await scriptedModel({
    scripts: {
      '*': options.replies ?? [
        { calls: [{ name: 'look', arguments: { secret: 'hunter2' } }] },
        { text: 'the answer is 42' },
      ],
    },
  })
  const tracing = await createTracing({ endpoint })
  const look = tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    input: { type: 'object', properties: { secret: { type: 'string' } } },
    run: ({ secret }: { secret?: string }) => {
      if (secret === 'none') throw new Error('no payroll')
      return 'seen the payroll'
    },
  })
  const helper = agent({
    name: 'helper',
    model: openaiChat({ provider: 'test', model: 'm', baseUrl: server.url }),
    instructions: 'Help.',
    tools: [look],
    middleware: [tracing.middleware],
  })
  const engine = createEngine({ backend: memory(), agents: [helper] })
  const session = engine.session({ user: 'ann', session: 's1' })
  const ran = tracing.continued(options.traceparent, () => session.run('What is my salary?', { turnId: 't1' }))
  const { text } = await ran.catch(() => ({ text: '' }))
  await tracing.close()
  await engine.stop()
  await server.close()
  return text
}

test('Y16: a turn is a trace with its model calls and tool calls, with usage and without content', async () => {
  const there = await collector()
  expect(await turn(there.url)).toBe('the answer is 42')
  expect(new Set(there.paths)).toEqual(new Set(['/v1/traces']))
  const spans = there.spans()
  const root = spans.find((it) => it.name === 'invoke_agent helper')!
  expect(spans.map((it) => it.name).sort()).toEqual(['chat m', 'chat m', 'execute_tool look', 'invoke_agent helper'])
  expect(new Set(spans.map((it) => it.traceId)).size).toBe(1)
  for (const it of spans) if (it !== root) expect(it.parentSpanId).toBe(root.spanId)
  expect(attribute(root, 'gen_ai.conversation.id')).toBe('default/ann/s1')
  expect(attribute(root, 'oxbow.turn.id')).toBe('t1')
  const [chat] = spans.filter((it) => it.name === 'chat m')
  expect(attribute(chat!, 'gen_ai.response.model')).toBe('m')
  expect(attribute(chat!, 'gen_ai.request.model')).toBe('m')
  expect(attribute(chat!, 'gen_ai.provider.name')).toBe('test')
  expect(Number(attribute(chat!, 'gen_ai.usage.input_tokens'))).toBe(10)
  expect(attribute(spans.find((it) => it.name === 'execute_tool look')!, 'oxbow.status')).toBe('success')
  expect(there.bodies.join('')).not.toMatch(/hunter2|payroll|salary|answer is/)
})

test('an unreachable collector loses traces and affects nothing else', async () => {
  expect(await turn('http://127.0.0.1:9')).toBe('the answer is 42')
})

test('failed turns, model calls and tool calls have the status ERROR and their error code', async () => {
  const there = await collector()
  const asks = { calls: [{ name: 'look', arguments: { secret: 'none' } }] }
  await turn(there.url, { replies: [asks, { status: 400 }] })
  const spans = there.spans()
  const failed = (name: string) => spans.findLast((it) => it.name === name)!
  expect(failed('execute_tool look').status.code).toBe(2)
  expect(attribute(failed('execute_tool look'), 'error.type')).toBe('tool_error')
  expect(attribute(failed('chat m'), 'error.type')).toBe('invalid_request')
  expect(failed('invoke_agent helper').status.code).toBe(2)
  expect(attribute(failed('invoke_agent helper'), 'error.type')).toBe('invalid_request')
})

test('a turn joins the trace that its caller names; an invalid traceparent is ignored', async () => {
  const [there, elsewhere] = [await collector(), await collector()]
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  await turn(there.url, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` })
  const root = there.spans().find((it) => it.name === 'invoke_agent helper')!
  expect(root).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7' })
  await turn(elsewhere.url, { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` })
  expect(elsewhere.spans().find((it) => it.name === 'invoke_agent helper')!.parentSpanId ?? '').toBe('')
})
