import { memory } from '@oxbow/backends/memory'
import { OxbowError } from '@oxbow/core'
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs, runInput } from './test.fixture.ts'

const start = rigs()

test('/healthz answers while the process runs', async () => {
  const { get } = await start()
  expect(await json(get('/healthz'))).toEqual({ status: 'ok' })
})

describe('/readyz', () => {
  test('names each capability', async () => {
    const { get } = await start()
    const answer = await get('/readyz')
    expect(answer.status).toBe(200)
    expect(await json(answer)).toEqual({
      status: 'ready',
      capabilities: {
        ...Object.fromEntries(
          ['store', 'journal', 'files', 'bus', 'locks', 'leases'].map((it) => [it, { ok: true, detail: 'memory' }]),
        ),
        queue: { ok: true, detail: 'memory: 0 due, 0 failed' },
        model: { ok: true, detail: 'scripted:any' },
        agents: { ok: true, detail: 'assistant' },
      },
    })
  })

  test('Y12: names a missing dependency; a missing optional one leaves the service ready', async () => {
    const missing = { name: 'mcp:tickets', ok: false, detail: 'MCP server tickets: unreachable: connect ECONNREFUSED' }
    for (const [required, status] of [
      [false, 200],
      [true, 503],
    ] as const) {
      const { get } = await start({ dependencies: () => [{ ...missing, required }] })
      const answer = await get('/readyz')
      expect(answer.status).toBe(status)
      expect((await json(answer)).capabilities['mcp:tickets']).toEqual({ ok: false, detail: missing.detail })
      const lines = (await (await get('/metrics')).text()).split('\n')
      expect(lines).toContain(`oxbow_dependency_up{name="mcp:tickets",required="${required}"} 0`)
    }
  })

  test('reports the error of the store, and no details', async () => {
    const backend = memory()
    const check = () => Promise.reject(new OxbowError('storage_error', 'the disk is full'))
    const { get } = await start({ backend: { ...backend, check } })
    const answer = await get('/readyz')
    expect(answer.status).toBe(503)
    expect(await json(answer)).toMatchObject({
      status: 'degraded',
      capabilities: {
        store: { ok: false, detail: 'memory: the disk is full' },
        journal: { ok: false },
        queue: { ok: true },
        agents: { ok: true },
      },
    })
  })

  test('is a 503 while the service starts, and while it stops', async () => {
    const backend = memory()
    const starting = gate()
    const announce: typeof backend.workers.announce = async (worker) => {
      await starting.pass()
      return backend.workers.announce(worker)
    }
    const { createEngine, agent } = await import('@oxbow/core')
    const { offline } = await import('@oxbow/models')
    const { createService, createLogger, loadConfig } = await import('./index.ts')
    const config = await loadConfig({ environment: { OXBOW_PROFILE: 'test' } })
    const log = createLogger({ level: 'silent', format: 'json' })
    const engine = createEngine({
      backend: { ...backend, workers: { ...backend.workers, announce } },
      agents: [agent({ name: 'a', model: offline(), instructions: 'x' })],
    })
    const service = createService({ engine, config, log })
    const env = { outgoing: { headersSent: false }, incoming: {} } as never
    const ask = async () => {
      const answer = await service.app.request('/readyz', { headers: { host: 'localhost' } }, env)
      return [answer.status, ((await answer.json()) as { status: string }).status]
    }
    const listening = service.listen()
    await starting.reached
    expect(await ask()).toEqual([503, 'starting'])
    starting.open()
    await listening
    expect(await ask()).toEqual([200, 'ready'])
    const closing = service.close()
    expect(await ask()).toEqual([503, 'stopping'])
    await closing
  })
})

test('/readyz answers new connections while running turns finish, and messages are refused', async () => {
  const held = gate()
  const { post, get, service, url } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
  const running = post('/api/chat', { message: 'Hi' })
  await held.reached
  const closing = service.close()
  const answer = await get('/readyz', { headers: { connection: 'close' } })
  expect([answer.status, (await json(answer)).status]).toEqual([503, 'stopping'])
  const refused = await post('/api/chat', { message: 'Hi' })
  expect([refused.status, (await json(refused)).error.code]).toEqual([503, 'shutting_down'])
  held.open()
  expect((await running).status).toBe(200)
  await closing
  await expect(fetch(`${url}/readyz`)).rejects.toThrow(/fetch failed/)
})

test('H14: a replica of role worker answers probes and metrics, and nothing else', async () => {
  // Its store is the memory of this process; the configuration asks for one that others share.
  const { get, post } = await start({ overrides: { 'server.role': 'worker', 'store.url': 'postgres://db/oxbow' } })
  expect((await get('/readyz')).status).toBe(200)
  expect((await get('/metrics')).status).toBe(200)
  expect((await post('/api/chat', { message: 'Hi' })).status).toBe(404)
})

test('/metrics counts requests, turns, model calls, tokens and tool calls', async () => {
  const { tool } = await import('@oxbow/core')
  const look = tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    input: { type: 'object', properties: {} },
    run: () => 'seen',
  })
  const { post, get } = await start({
    agent: { tools: [look] },
    replies: [{ calls: [{ name: 'look' }, { name: 'invented' }] }, { text: 'Seen.' }, { status: 401, body: 'no' }],
  })
  await post('/api/chat', { message: 'Hi' })
  await (await post('/api/chat/stream', runInput('Hi'))).text()
  await get('/nothing')
  const answer = await get('/metrics')
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain/)
  const text = await answer.text()
  const lines = [
    'oxbow_http_request_duration_seconds_count{method="POST",route="/api/chat",status="200"} 1',
    'oxbow_http_request_duration_seconds_count{method="POST",route="/api/chat/stream",status="200"} 1',
    'oxbow_http_request_duration_seconds_count{method="GET",route="unmatched",status="404"} 1',
    'oxbow_turns_total{agent="assistant",end="finished"} 1',
    'oxbow_turns_total{agent="assistant",end="failed"} 1',
    'oxbow_turns_running 0',
    'oxbow_streams_open 0',
    'oxbow_model_call_duration_seconds_count{model="scripted:any",finish="calls"} 1',
    'oxbow_model_call_duration_seconds_count{model="scripted:any",finish="stop"} 1',
    'oxbow_model_call_duration_seconds_count{model="scripted:any",finish="auth"} 1',
    'oxbow_model_tokens_total{model="scripted:any",kind="input"} 20',
    'oxbow_tool_calls_total{tool="look",status="success"} 1',
    'oxbow_tool_calls_total{tool="unknown",status="error"} 1',
    'oxbow_stream_repairs_total 0',
  ]
  for (const line of lines) expect(text.split('\n')).toContain(line)
  expect(text).toContain('nodejs_eventloop_lag_seconds')
  expect(text).toContain('process_cpu_seconds_total')
})
