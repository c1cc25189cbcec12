// B17: metrics that show that something is stuck.
import { type Capability, type Model, tool } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { json, type Rig, rigs } from '../test.fixture.ts'

const start = rigs()
const pay = tool({ name: 'pay', description: 'Pays.', effects: ['write'], input: {}, run: () => 'paid' })
const replies = [{ calls: [{ name: 'pay' }] }, { text: 'Done.' }]

async function figures({ get }: Pick<Rig, 'get'>): Promise<Record<string, number>> {
  const answer = await get('/metrics')
  expect(answer.status).toBe(200)
  const lines = (await answer.text()).split('\n').filter((it) => !it.startsWith('#') && it !== '')
  return Object.fromEntries(
    lines.map((it) => [it.slice(0, it.lastIndexOf(' ')), Number(it.slice(it.lastIndexOf(' ')))]),
  )
}

describe('B17: /metrics', () => {
  test('counts open sessions by status, and reports the longest standstill and the time of ended turns in each state', async () => {
    const rig = await start({ agent: { tools: [pay] }, replies })
    const asked = await json(rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' }))
    const waiting = await figures(rig)
    expect(waiting).toMatchObject({
      'oxbow_sessions_open{status="waiting"}': 1,
      'oxbow_sessions_open{status="running"}': 0,
      'oxbow_sessions_open{status="parked"}': 0,
      oxbow_turns_overdue: 0,
    })
    expect(waiting['oxbow_session_longest_still_seconds{status="waiting"}']).toBeGreaterThan(0)
    await rig.post(`/api/approvals/${asked.approvals[0].id}`, { verdict: 'approved' })
    await rig.engine.session({ user: 'default', session: 's' }).wait('t')
    const over = await figures(rig)
    expect(over['oxbow_sessions_open{status="waiting"}']).toBe(0)
    for (const state of ['RUNNING', 'WAITING_TOOL', 'WAITING_USER'])
      expect(over[`oxbow_turn_state_seconds_count{state="${state}"}`]).toBe(1)
    expect(over['oxbow_turn_state_seconds_sum{state="WAITING_USER"}']).toBeGreaterThan(0)
  })

  test('counts turns that exceed their time limit until a worker ends them', async () => {
    const rig = await start({ agent: { tools: [pay], limits: { approvalTimeoutMs: 1 } }, replies })
    await rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' })
    expect((await figures(rig)).oxbow_turns_overdue).toBe(1)
    await rig.engine.recover()
    await rig.engine.session({ user: 'default', session: 's' }).wait('t')
    expect((await figures(rig)).oxbow_turns_overdue).toBe(0)
  })

  test('H14: shows what replicas watch: the queue, takeovers, conflicts and the lag of the bus', async () => {
    const rig = await start({ replies: { always: { text: 'Hello.' } } })
    await rig.engine.backend.queue.enqueue({
      key: { tenant: 'default', user: 'ann', session: 's' },
      reason: 'test',
    })
    const all = await figures(rig)
    expect(all).toMatchObject({ oxbow_takeovers_total: 0, oxbow_append_conflicts_total: 0, oxbow_queue_failed: 0 })
    expect(all).toHaveProperty('oxbow_queue_due')
    expect(all).toHaveProperty('oxbow_queue_oldest_seconds')
    // The messages of one process do not leave it.
    expect(all.oxbow_bus_lag_seconds).toBeNaN()
  })

  test('still reports the other metrics when the store cannot be read', async () => {
    const rig = await start({ replies })
    await rig.engine.backend.close()
    const all = await figures(rig)
    expect(all.oxbow_turns_running).toBe(0)
    expect(all.oxbow_turns_overdue).toBeNaN()
    expect(Object.keys(all).filter((it) => it.startsWith('oxbow_sessions_open'))).toEqual([])
  })

  test.each([
    ['infinite', { prompt_tokens: Infinity, completion_tokens: 5 }],
    ['too large for a number of tokens', { prompt_tokens: 1e300, completion_tokens: 5 }],
    ['negative', { prompt_tokens: -90, completion_tokens: 5 }],
    ['not a whole number', { prompt_tokens: 1.5, completion_tokens: 5 }],
    ['text', { prompt_tokens: 'many', completion_tokens: 5 }],
  ])('a provider’s usage value that is %s fails no turn and no other metric', async (_, usage) => {
    const frame = { choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }], usage }
    const body = JSON.stringify(frame).replace('null', '1e999')
    const rig = await start({ replies: { always: { raw: `data: ${body}\n\ndata: [DONE]\n\n` } } })
    // The first turn runs before the metrics library is loaded, the second after.
    for (const turn of [1, 2]) {
      const answer = await rig.post('/api/chat', { sessionId: 's', message: 'Hello?' })
      expect(answer.status).toBe(200)
      const all = await figures(rig)
      expect(all['oxbow_model_tokens_total{model="scripted:any",kind="output"}']).toBeGreaterThanOrEqual(turn)
      expect(all['oxbow_model_tokens_total{model="scripted:any",kind="input"}']).toBeLessThan(100)
    }
  })

  test('invalid usage of a custom model is neither counted nor stored', async () => {
    const mad: Model = {
      id: 'own:mad',
      async generate() {
        const usage = { inputTokens: Number.NaN, cacheReadTokens: -5, cacheWriteTokens: Infinity, cost: Infinity }
        const blocks = [{ type: 'text' as const, text: 'Yes.' }]
        const reported = { ...usage, outputTokens: 7, reasoningTokens: -1, estimated: false }
        return { blocks, finishReason: 'stop', usage: reported, model: 'M'.repeat(5_000_000) }
      },
    }
    const rig = await start({ agent: { model: mad } })
    expect((await rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Hello?' })).status).toBe(200)
    const all = await figures(rig)
    expect(all['oxbow_model_tokens_total{model="own:mad",kind="output"}']).toBe(7)
    const events = await rig.engine.session({ user: 'default', session: 's' }).events(0)
    const finished = events.find((it) => it.type === 'model.finished')!
    expect(finished.usage).toEqual({
      inputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 7,
      reasoningTokens: 0,
      estimated: false,
    })
    expect(finished.model).toHaveLength(256)
  })

  test('counts the usage of a compaction’s summary under its model', async () => {
    const rig = await start({ replies: { always: { text: 'Yes.' } } })
    const { model } = rig.engine.agents.get('assistant')!
    const notes: Model = { ...model, id: 'scripted:notes' }
    const summarising: Capability = {
      name: 'summarising',
      compaction: () => ({
        due: ({ messages }) => (messages.length === 3 ? 'messages' : undefined),
        async compact({ generate, conversation }) {
          const { messages } = conversation
          const { usage } = await generate!(notes, { system: 'Summarise.', messages, tools: [] })
          return { tier: 'none', tokensBefore: 1, tokensAfter: 1, parts: {}, usage }
        },
      }),
    }
    const compacting = await start({ agent: { capabilities: [summarising] }, model: rig.model })
    for (const message of ['One.', 'Two.']) await compacting.post('/api/chat', { sessionId: 's', message })
    const all = await figures(compacting)
    expect(all['oxbow_model_call_duration_seconds_count{model="scripted:notes",finish="stop"}']).toBe(1)
    expect(all['oxbow_model_tokens_total{model="scripted:notes",kind="output"}']).toBeGreaterThan(0)
  })
})
