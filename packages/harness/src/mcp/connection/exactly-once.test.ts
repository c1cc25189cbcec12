// Interrupted calls: repeated where the server executes a repetition only once, reconciled, or left unknown.
import { memory } from '@oxbow/backends'
import { agent, createEngine } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { gate, scriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callOf, connected, type Message, rawServer, talking } from '../mcp.fixture.ts'
import type { McpHttpServer } from '../options.ts'

const order = (more: object = {}) => ({ name: 'order', inputSchema: { type: 'object' }, ...more })
const idempotent = order({ annotations: { idempotentHint: true } })
const metaOf = ({ params }: Message): unknown => params?._meta

/** A server that executes each operation once and loses the answer to the first request. */
async function remembering() {
  const done = new Set<unknown>()
  let requests = 0
  const server = await rawServer((message, request) => {
    done.add((metaOf(message) as { 'oxbow/operationId': string })['oxbow/operationId'])
    if (++requests > 1) return { content: [{ type: 'text', text: 'ordered' }] }
    request.socket.destroy()
    return undefined
  })
  server.tools = [idempotent]
  return { server, done, requests: () => requests }
}

describe('Y12: a call whose answer is lost', () => {
  test('is sent again, with the same operation id, when the tool is idempotent and the operator trusts that hint', async () => {
    const { server, done, requests } = await remembering()
    const it = await talking({ raw: { url: server.url, tools: ['*'], trustIdempotent: true } }, [
      callOf('order'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'success', content: [{ text: 'ordered' }] })
    expect(requests()).toBe(2)
    const started = (await it.events()).find((event) => event.type === 'call.started')!
    expect([...done]).toEqual([started.operationId])
  })

  test('is unknown when the operator does not trust the hint', async () => {
    const { server, requests } = await remembering()
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('order'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'unknown' })
    expect(requests()).toBe(1)
  })
})

describe('Y12: a call whose process dies', () => {
  /** The first engine stops in the middle of a call; a second one claims the turn. */
  async function interrupted(witness: unknown, more: Partial<McpHttpServer> = {}, tool: object = order()) {
    const reached = gate()
    const asked: Message[] = []
    let runs = 0
    const server = await rawServer(async (message) => {
      if (message.params?.name === 'find_order') {
        asked.push(message)
        return witness
      }
      if (++runs === 1) await reached.pass()
      return { content: [{ type: 'text', text: `run ${runs}` }] }
    })
    const inputSchema = {
      type: 'object',
      properties: { operation_id: { type: 'string' }, item: { type: 'string' }, color: { type: 'string' } },
    }
    server.tools = [tool as never, { name: 'find_order', inputSchema, annotations: { readOnlyHint: true } }]
    const model = await scriptedModel({ scripts: { model: [callOf('order', { item: 'tea' }), { text: 'Told.' }] } })
    const backend = memory()
    const start = async () => {
      const { servers } = await connected({ raw: { url: server.url, tools: ['*'], ...more } })
      const driver = openaiChat({ provider: 'test', model: 'model', baseUrl: model.url })
      const definition = { name: 'agent', model: driver, instructions: 'You work.', mode: 'bypass' } as const
      const engine = createEngine({ backend, agents: [agent({ ...definition, capabilities: [servers] })] })
      return { engine, session: engine.session({ user: 'ann', session: 's1' }) }
    }
    const first = await start()
    void first.session.run('Go.', { turnId: 't1' }).catch(() => {})
    await reached.reached
    await first.engine.stop(0)
    const second = await start()
    onTestFinished(async () => {
      reached.open()
      await second.engine.stop(0)
      await backend.close()
      await model.close()
    })
    await second.engine.start()
    await second.session.wait('t1')
    const finished = (await second.session.events(0)).find((it) => it.type === 'call.finished')
    const started = (await second.session.events(0)).find((it) => it.type === 'call.started')
    return { finished, started, asked, runs: () => runs }
  }
  const json = (value: object) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
  const reconcile = { order: 'find_order' }

  test('has its result when the server reports it as done', async () => {
    const it = await interrupted(json({ status: 'done', result: 'order 7' }), { reconcile })
    expect(it.finished).toMatchObject({ status: 'success', content: [{ type: 'text', text: 'order 7' }] })
    expect(it.runs()).toBe(1)
    expect(it.asked[0]!.params!.arguments).toEqual({ operation_id: it.started!.operationId, item: 'tea' })
  })

  test('runs again when the server reports it as not done', async () => {
    const it = await interrupted({ structuredContent: { status: 'not_done' }, content: [] }, { reconcile })
    expect(it.finished).toMatchObject({ status: 'success', content: [{ type: 'text', text: 'run 2' }] })
  })

  test.each([
    ['answers with another status', json({ status: 'perhaps' })],
    ['fails', { isError: true, ...json({ status: 'done' }) }],
    ['answers in words', { content: [{ type: 'text', text: 'It was done.' }] }],
  ])('stays unknown when the server %s', async (_, witness) => {
    const it = await interrupted(witness, { reconcile })
    expect(it.finished).toMatchObject({ status: 'unknown' })
    expect(it.runs()).toBe(1)
  })

  test('stays unknown when the reconciling tool is missing', async () => {
    const it = await interrupted(json({ status: 'done' }), { reconcile: { order: 'nobody' } })
    expect(it.finished).toMatchObject({ status: 'unknown' })
  })

  test('runs again when the tool is idempotent and the operator trusts that hint', async () => {
    const it = await interrupted(json({}), { trustIdempotent: true }, idempotent)
    expect(it.finished).toMatchObject({ status: 'success', content: [{ type: 'text', text: 'run 2' }] })
  })
})
