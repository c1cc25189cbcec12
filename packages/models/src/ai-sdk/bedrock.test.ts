// What Bedrock streams beside the text and the calls of a model, and what it wants to be told.
import type { Message } from '@oxbow/core'
import { expect, test } from 'vitest'
import { ask, askInVain, userMessage } from '../asking.fixture.ts'
import { bedrockAt, bedrockEvents, play } from './ai-sdk.fixture.ts'
import { aiSdk } from './ai-sdk.ts'

const claude = (server: { readonly url: string }) => aiSdk(bedrockAt(server)('us.anthropic.claude-sonnet-4-5-v1:0'))

test('B1: an answer of Bedrock that breaks off between its reason and its figures is whole', async () => {
  const events = bedrockEvents([
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'all of it' } }],
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ['messageStop', { stopReason: 'end_turn' }],
  ])
  const figures = bedrockEvents([['metadata', { usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 } }]])
  for (const broken of [events, Buffer.concat([events, figures.subarray(0, 20)])]) {
    const { reply } = await ask(claude(await play({ body: [broken], ending: 'cut' })))
    expect(reply).toMatchObject({ finishReason: 'stop', blocks: [{ text: 'all of it' }], usage: { estimated: true } })
  }
  const { reply } = await ask(claude(await play({ body: [events, figures] })))
  expect(reply.usage).toMatchObject({ inputTokens: 5, outputTokens: 2, estimated: false })
  const half = bedrockEvents([['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'half' } }]])
  expect((await askInVain(claude(await play({ body: [half], ending: 'cut' })))).error.code).toBe('stream_cut')
})

test('B1: tools that Bedrock runs itself are neither calls nor faults', async () => {
  const use = (toolUse: object) => ({ contentBlockIndex: 0, start: { toolUse } })
  const events = bedrockEvents([
    ['contentBlockStart', use({ toolUseId: 's1', name: 'web', type: 'server_tool_use' })],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input: '{}' } } }],
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ['contentBlockStart', { contentBlockIndex: 1, start: { toolResult: { toolUseId: 's1' } } }],
    ['contentBlockDelta', { contentBlockIndex: 1, delta: { toolResult: [{ text: 'found' }] } }],
    ['contentBlockStop', { contentBlockIndex: 1 }],
    ['contentBlockDelta', { contentBlockIndex: 2, delta: { text: 'Found it.' } }],
    ['contentBlockStop', { contentBlockIndex: 2 }],
    ['messageStop', { stopReason: 'end_turn' }],
    ['metadata', { usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 } }],
  ])
  const { reply } = await ask(claude(await play({ body: [events] })))
  expect(reply).toMatchObject({ finishReason: 'stop', blocks: [{ type: 'text', text: 'Found it.' }] })
  expect(reply.blocks).toHaveLength(1)
})

test('B1: Claude on Bedrock gets cache points behind the system text and the newest message', async () => {
  const done = { body: [bedrockEvents([['messageStop', { stopReason: 'end_turn' }]])] }
  const server = await play(done, done, done)
  const cachePoint = { cachePoint: { type: 'default' } }
  await ask(claude(server), { system: 'Be brief.' })
  expect(server.requests[0]!.body).toMatchObject({
    system: [{ text: 'Be brief.' }, cachePoint],
    messages: [{ role: 'user', content: [{ text: 'hi' }, cachePoint] }],
  })
  const messages: Message[] = [
    userMessage('hi'),
    { id: 'a', role: 'assistant', blocks: [{ type: 'call', callId: 'c1', tool: 'weather', arguments: '{}' }] },
    {
      id: 't',
      role: 'tool',
      blocks: [{ type: 'result', callId: 'c1', tool: 'weather', status: 'success', content: [] }],
    },
  ]
  const tools = [{ name: 'weather', description: 'Tells the weather.', input: {} }]
  await ask(claude(server), { messages, tools })
  expect(server.requests[1]!.body.messages.at(-1).content).toMatchObject([{ toolResult: {} }, cachePoint])
  expect(JSON.stringify(server.requests[1]!.body).match(/cachePoint/g)).toHaveLength(1)
  await ask(aiSdk(bedrockAt(server)('amazon.titan')), { system: 'Be brief.' })
  expect(JSON.stringify(server.requests[2]!.body)).not.toContain('cachePoint')
})
