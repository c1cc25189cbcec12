// Journals of released versions must load forever: one fixture per version, with every event that it could write.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { memory } from '@oxbow/backends'
import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { assertWhole, bench, echo } from '../core.fixture.ts'
import { eventJsonSchema, event as eventSchema } from '../events/schema.ts'
import { type Event, externalTool, tool, turnResult } from '../index.ts'
import { emptyState, evolve, statusOf } from '../internal.ts'

const directory = fileURLToPath(new URL('./fixtures', import.meta.url))
const fixtures = readdirSync(directory).filter((it) => it.startsWith('journal-'))
const read = (name: string): Event[] =>
  readFileSync(`${directory}/${name}`, 'utf8')
    .trimEnd()
    .split('\n')
    .map((it) => JSON.parse(it) as Event)

/** The agent that wrote the fixtures. */
const tools = [
  echo,
  tool({ name: 'write', description: 'w', effects: ['write'], input: {}, run: () => 'written' }),
  tool({ name: 'long', description: 'l', effects: ['read'], input: {}, run: () => 'x'.repeat(600) }),
  externalTool({ name: 'ask', description: 'a', effects: ['read'], input: {} }),
]

describe.each(fixtures)('%s', (name) => {
  const events = read(name)

  test('loads: the conversation and the ends of its turns are what they were', () => {
    const state = events.reduce(evolve, emptyState)
    expect(statusOf(state)).toBe('idle')
    expect(state.finished.map((it) => turnResult(it.turnId, events).status)).toEqual([
      'finished',
      'finished',
      'cancelled',
      'failed',
    ])
    expect(state.messages.map((it) => it.role).join(' ')).toBe(
      'user assistant tool assistant user assistant user assistant user assistant user assistant user',
    )
    expect(turnResult('t2', events).output).toEqual({ n: 1 })
  })

  test('fits the schema of today, and holds every type of event but those of parking', () => {
    for (const it of events) expect(eventSchema.safeParse(it).error).toBeUndefined()
    const { oneOf } = eventJsonSchema() as { oneOf: { properties: { type: { const: string } } }[] }
    const missing = oneOf.map((it) => it.properties.type.const).filter((type) => !events.some((it) => it.type === type))
    // Parking needs a broken store; approvals, pauses, slots, compaction and durable work came after 0.1.0.
    const later = [
      'work.started',
      'work.finished',
      'signal.received',
      'approval.requested',
      'approval.resolved',
      'pause.requested',
      'reply.reviewed',
      'state.changed',
      'context.compacted',
      'child.opened',
      'child.detached',
      'child.closed',
      'result.delivered',
      'turn.yielded',
    ]
    expect(missing.filter((it) => !later.includes(it))).toEqual(['turn.released'])
  })

  test('cut off after any event it is resumed and finishes', async () => {
    for (let length = 1; length < events.length; length++) {
      const backend = memory()
      const cut = events.slice(0, length)
      const state = cut.reduce(evolve, emptyState)
      const { key } = cut[0] as Event<'session.opened'>
      await backend.journal.append(key, 0, cut, { status: statusOf(state), agent: 'helper', title: '' })
      const structured = state.turn?.options.output !== undefined
      const { session, engine } = await bench(
        () => ({ text: structured ? '{"n":1}' : 'ok' }),
        { version: '1', tools, deny: ['write'] },
        { backend },
      )
      await engine.start()
      const open = [...(state.turn ? [state.turn.turnId] : []), ...state.queue.map((it) => it.started.turnId)]
      for (const turnId of open) {
        let result = await session.wait(turnId).catch((error: unknown) => error as { status?: string })
        while ('pending' in result && result.status === 'paused') {
          await session.resolve(result.pending[0]!.callId, { content: 'blue' })
          result = await session.wait(turnId)
        }
      }
      assertWhole(await eventsOf(session))
      expect((await session.run('And now?')).status).toBe('finished')
      await engine.stop()
    }
  })
})
