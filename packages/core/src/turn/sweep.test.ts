// The sweep ends overdue turns, regardless of other engines' overdue turns in the same store.
import { memory } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { scriptedModel, until } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { call, ofType } from '../core.fixture.ts'
import { type AgentDefinition, agent, createEngine, tool } from '../index.ts'

test('overdue sessions of unknown agents do not block the sweep of others', async () => {
  const server = await scriptedModel({
    scripts: { '*': ({ messages }) => (messages.at(-1)?.role === 'tool' ? { text: 'ok' } : call('send', {})) },
  })
  const backend = memory()
  const send = tool({ name: 'send', description: 'Sends.', effects: ['write'], input: {}, run: () => 'sent' })
  const engineOf = (name: string, limits: AgentDefinition['limits']) => {
    const model = openaiChat({ provider: 'test', model: name, baseUrl: server.url })
    const engine = createEngine({
      backend,
      agents: [agent({ name, model, instructions: 'x', tools: [send], ...(limits && { limits }) })],
      onError: () => {},
    })
    onTestFinished(() => engine.stop(0))
    return engine
  }
  onTestFinished(() => server.close())
  const mine = engineOf('mine', { approvalTimeoutMs: 1 })
  const session = mine.session({ user: 'ann', session: 's' })
  const { approvals } = await session.run('Go.', { turnId: 't' })
  const theirs = engineOf('theirs', { stateTimeoutsMs: { WAITING_USER: 1 } })
  for (let i = 0; i < 120; i++) await theirs.session({ user: 'bob', session: `b${i}` }).run('Go.')
  await theirs.stop(0)
  await until(() => Date.now() > approvals[0]!.expiresAt + 1)
  await mine.recover()
  expect((await session.wait('t')).text).toBe('ok')
  expect(ofType(await session.events(), 'approval.resolved')[0]).toMatchObject({ verdict: 'expired' })
})
