import { memory } from '@oxbow/backends'
import { agent, createEngine, tool } from '@oxbow/core'
import { subAgents } from '@oxbow/harness'
import { openaiChat } from '@oxbow/models'
import { scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { approving } from './approving.ts'
import { plain } from './transcript.ts'

test('H2: r offers the rules that would allow similar calls, and remembers the chosen one', async () => {
  const server = await scriptedModel({
    scripts: { '*': [{ calls: [{ name: 'save', arguments: {} }] }, { text: 'Saved.' }] },
  })
  const save = tool({ name: 'save', description: 'Saves.', effects: ['write'], input: {}, run: () => 'saved' })
  const model = openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url })
  const backend = memory()
  const helper = agent({ name: 'helper', model, instructions: 'Help.', tools: [save] })
  const engine = createEngine({ backend, agents: [helper] })
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await server.close()
  })
  const session = engine.session({ user: 'ann' })
  await session.run('Go.', { turnId: 't1' })
  const seen: string[] = []
  const print = (line: string): void => void seen.push(line)
  const terminal = approving(session, { style: plain, print, prompt: print })
  expect(await terminal.begin()).toBe(true)
  await terminal.take('r')
  expect(seen).toContain('  1  save')
  expect(await terminal.take('1 u')).toMatchObject({ turnId: 't1' })
  expect((await session.wait('t1')).text).toBe('Saved.')
  expect((await session.events()).find((it) => it.type === 'approval.resolved')).toMatchObject({
    remember: { rule: 'save', scope: 'user' },
  })
})

test('H2: r remembers for all sessions where a session rule would not be enough', async () => {
  const handOff = JSON.stringify({ status: 'done', conclusion: 'Saved.', facts: [], open_questions: [] })
  const server = await scriptedModel({
    scripts: {
      lead: [{ calls: [{ name: 'agent_spawn', arguments: { agent: 'kid', task: 'Save.' } }] }, { text: 'Saved.' }],
      kid: [{ calls: [{ name: 'save', arguments: {} }] }, { text: handOff }],
    },
  })
  const save = tool({ name: 'save', description: 'Saves.', effects: ['write'], input: {}, run: () => 'saved' })
  const of = (name: string) => ({
    name,
    model: openaiChat({ provider: 'test', model: name, baseUrl: server.url }),
    instructions: 'Help.',
    tools: [save],
  })
  const kid = agent(of('kid'))
  const lead = agent({ ...of('lead'), capabilities: [subAgents([{ description: 'Saves.', agent: kid }])] })
  const backend = memory()
  const engine = createEngine({ backend, agents: [lead] })
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await server.close()
  })
  const session = engine.session({ user: 'ann' })
  await session.run('Go.', { turnId: 't1' })
  const seen: string[] = []
  const print = (line: string): void => void seen.push(line)
  const terminal = approving(session, { style: plain, print, prompt: print })
  await terminal.begin()
  await terminal.take('r')
  expect(seen.at(-1)).toBe('Which rule, for all your sessions? A number: ')
  await terminal.take('1')
  expect((await session.wait('t1')).text).toBe('Saved.')
})
