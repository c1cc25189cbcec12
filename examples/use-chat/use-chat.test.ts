// The route of this example with the client that `useChat` is made of.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Chat } from '@ai-sdk/react'
import { serve } from '@hono/node-server'
import { scriptedModel } from '@oxbow/testing'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import { agent, createEngine, memory, openaiChat, tool } from 'oxbow'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { chatRoute } from './chat-route.ts'

const area = tool({
  name: 'area',
  description: 'The area of a rectangle.',
  effects: ['read'],
  input: z.object({ width: z.number(), height: z.number() }),
  run: ({ width, height }) => ({ area: width * height }),
})
const paid: unknown[] = []
const pay = tool({
  name: 'pay',
  description: 'Pays an amount.',
  effects: ['write'],
  input: z.object({ amount: z.number() }),
  run: (input) => {
    paid.push(input)
    return 'Paid.'
  },
})

type Replies = NonNullable<Parameters<typeof scriptedModel>[0]>['scripts']

async function client(replies: NonNullable<Replies>[string]): Promise<Chat<UIMessage>> {
  const model = await scriptedModel({ scripts: { helper: replies } })
  const helper = agent({
    name: 'helper',
    model: openaiChat({ provider: 'test', model: 'helper', baseUrl: model.url }),
    instructions: 'Help.',
    tools: [area, pay],
  })
  const engine = createEngine({ backend: memory(), agents: [helper] })
  const port = await new Promise<number>((resolve) => {
    const server = serve({ fetch: (request) => chatRoute(engine, request, 'ann@example.com'), port: 0 }, (it) =>
      resolve(it.port),
    )
    onTestFinished(async () => {
      server.close()
      await engine.stop(0)
      await model.close()
    })
  })
  return new Chat({
    transport: new DefaultChatTransport({ api: `http://127.0.0.1:${port}/api/chat` }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
}

test('a conversation with a tool call arrives as messages, and the session keeps it', async () => {
  const chat = await client([
    { calls: [{ name: 'area', arguments: '{"width":3,"height":4}' }] },
    { text: 'It is 12.' },
    { text: 'You are welcome.' },
  ])
  await chat.sendMessage({ text: 'What is the area of 3 by 4?' })
  expect(chat.error).toBeUndefined()
  const parts = chat.lastMessage!.parts as { type: string; state?: string; output?: unknown; text?: string }[]
  expect(parts.find((it) => it.type === 'dynamic-tool')).toMatchObject({
    toolName: 'area',
    input: { width: 3, height: 4 },
    state: 'output-available',
    output: '{"area":12}',
  })
  expect(parts.find((it) => it.type === 'text')).toMatchObject({ text: 'It is 12.', state: 'done' })
  await chat.sendMessage({ text: 'Thanks' })
  expect(chat.lastMessage!.parts).toContainEqual(expect.objectContaining({ text: 'You are welcome.' }))
})

test.each([
  [true, [{ amount: 5 }], 'output-available'],
  [false, [], 'output-denied'],
])('an approval that is answered with %s continues the turn', async (approved, expected, state) => {
  paid.length = 0
  const chat = await client([{ calls: [{ name: 'pay', arguments: '{"amount":5}' }] }, { text: 'Done.' }])
  await chat.sendMessage({ text: 'Pay 5.' })
  const asked = (chat.lastMessage!.parts as { approval?: { id: string } }[]).find((it) => it.approval !== undefined)!
  expect(paid).toEqual([])
  await chat.addToolApprovalResponse({ id: asked.approval!.id, approved })
  await expect.poll(() => JSON.stringify(chat.lastMessage?.parts)).toContain('Done.')
  expect(chat.error).toBeUndefined()
  expect(paid).toEqual(expected)
  expect((chat.lastMessage!.parts as { type: string }[]).find((it) => it.type === 'dynamic-tool')).toMatchObject({
    state,
  })
})

test('B16: a message in place of a decision withdraws the request, and the conversation goes on', async () => {
  paid.length = 0
  const chat = await client([
    { calls: [{ name: 'pay', arguments: '{"amount":5}' }] },
    { text: 'Then not.' },
    { calls: [{ name: 'pay', arguments: '{"amount":6}' }] },
    { text: 'Paid 6.' },
  ])
  await chat.sendMessage({ text: 'Pay 5.' })
  await chat.sendMessage({ text: 'Wait, what for?' })
  expect(chat.error).toBeUndefined()
  expect(chat.lastMessage!.parts).toContainEqual(expect.objectContaining({ text: 'Then not.' }))
  await chat.sendMessage({ text: 'Pay 6.' })
  const asked = (chat.lastMessage!.parts as { approval?: { id: string } }[]).find((it) => it.approval !== undefined)!
  await chat.addToolApprovalResponse({ id: asked.approval!.id, approved: true })
  await expect.poll(() => JSON.stringify(chat.lastMessage?.parts)).toContain('Paid 6.')
  expect(paid).toEqual([{ amount: 6 }])
})

test('B16: a file goes along, and a link to one is refused', async () => {
  const chat = await client([{ text: 'A picture.' }])
  await chat.sendMessage({
    parts: [
      { type: 'text', text: 'What is this?' },
      { type: 'file', mediaType: 'image/png', filename: 'a.png', url: 'data:image/png;base64,AAEC' },
    ],
  } as never)
  expect(chat.error).toBeUndefined()
  expect(chat.lastMessage!.parts).toContainEqual(expect.objectContaining({ text: 'A picture.' }))
  await chat.sendMessage({
    parts: [{ type: 'file', mediaType: 'image/png', filename: 'b.png', url: 'https://example.com/b.png' }],
  } as never)
  expect(chat.error?.message).toContain('must be a data URL')
})

test('B16: the program serves the page and the route, with what is installed here', async () => {
  const program = fileURLToPath(new URL('main.ts', import.meta.url))
  const child = spawn(process.execPath, ['--conditions=oxbow-source', program], {
    env: { ...process.env, OXBOW_MODEL: 'offline', PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const [address] = /http:\/\/[\d.:]+/.exec(String(line))!
  const page = await (await fetch(address)).text()
  expect(page).toContain('<div id="root">')
  expect(page.match(/<\/script>/g)).toHaveLength(1)
  const message = { role: 'user', parts: [{ type: 'text', text: 'Pay invoice "7".' }] }
  const body = JSON.stringify({ id: 'chat', messages: [message] })
  const answer = await fetch(`${address}/api/chat`, { method: 'POST', body })
  expect(await answer.text()).toContain('"type":"tool-approval-request"')
})

test('a failure is an error message for end users', async () => {
  const chat = await client([{ status: 401, body: '{"error":{"message":"internal words"}}' }] as never)
  await chat.sendMessage({ text: 'Hello' })
  expect(chat.error?.message).toBeDefined()
  expect(chat.error?.message).not.toContain('internal words')
})
