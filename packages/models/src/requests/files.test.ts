// One file that a format does not accept would fail every later turn of its session.
import type { Message } from '@oxbow/core'
import { expect, test } from 'vitest'
import { ask, modelAt, responsesAt, serve, userMessage } from '../asking.fixture.ts'

const data = (content: string) => Buffer.from(content).toString('base64')
const files = [
  { type: 'data' as const, mediaType: 'text/csv', name: 'a.csv', data: data('id,name\n1,Ann') },
  { type: 'data' as const, mediaType: 'image/svg+xml', name: 'a.svg', data: data('<svg/>') },
  { type: 'data' as const, mediaType: 'audio/wav', name: 'a.wav', data: data('RIFF') },
  { type: 'data' as const, mediaType: 'image/png', name: 'a.png', data: data('png') },
]
const messages: Message[] = [
  { id: 'u', role: 'user', blocks: [{ type: 'text', text: 'Look' }, ...files] },
  { id: 'a', role: 'assistant', blocks: [{ type: 'call', callId: 'c', tool: 'get', arguments: '{}' }] },
  { id: 't', role: 'tool', blocks: [{ type: 'result', callId: 'c', tool: 'get', status: 'success', content: files }] },
  { ...userMessage('and?'), id: 'u2' },
]

test.each([
  ['chat', modelAt, 'image_url'],
  ['responses', responsesAt, 'input_image'],
])('B1: readable files go as text, others as a note, images as images: %s', async (_, at, imageType) => {
  const server = await serve({ text: 'a' })
  await ask(at(server), { messages })
  const body = JSON.stringify(server.requests[0]?.body)
  expect(body.match(/id,name\\\\?n?\\n1,Ann|id,name\\n1,Ann/g)).toHaveLength(2)
  expect(body.match(/<svg\/>/g)).toHaveLength(2)
  expect(body).not.toMatch(/base64,UklGRg|audio\/wav;|text\/csv;|svg\+xml;/)
  expect(body.match(/\[file a\.wav audio\/wav\]/g)).toHaveLength(2)
  expect(body.match(new RegExp(`"type":"${imageType}"`, 'g'))).toHaveLength(2)
})
