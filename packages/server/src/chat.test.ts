import { afterEach, expect, test } from 'vitest'
import { framesOf, type Rig, type RigOptions, rig, runInput } from './test.fixture.ts'

let open: Rig[] = []
const start = async (options?: RigOptions): Promise<Rig> => {
  const made = await rig(options)
  open.push(made)
  return made
}
afterEach(async () => {
  await Promise.all(open.map((it) => it.close()))
  open = []
})

test('Y1 a message is answered, and the session goes on under its id', async () => {
  const { post } = await start({ replies: [{ text: 'Hello there.' }, { text: 'Again.' }] })
  const answer = await post('/api/chat', { message: 'Hi' })
  const first = (await answer.json()) as { sessionId: string }
  expect(answer.status).toBe(200)
  expect(first).toEqual({ sessionId: expect.any(String), reply: 'Hello there.' })
  const second = await (await post('/api/chat', { sessionId: first.sessionId, message: 'Hi' })).json()
  expect(second).toEqual({ sessionId: first.sessionId, reply: 'Again.' })
})

test('Y3 a run is streamed', async () => {
  const { post } = await start({ replies: [{ thinking: 'Hm, so.', text: 'Hello there.' }] })
  const answer = await post('/api/chat/stream', runInput('Hi'))
  const text = await answer.text()
  expect(framesOf(text).map((it) => it.type)).toMatchInlineSnapshot(`
    [
      "RUN_STARTED",
      "REASONING_START",
      "REASONING_MESSAGE_START",
      "REASONING_MESSAGE_CONTENT",
      "REASONING_MESSAGE_CONTENT",
      "REASONING_MESSAGE_END",
      "REASONING_END",
      "TEXT_MESSAGE_START",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_END",
      "CUSTOM",
      "RUN_FINISHED",
    ]
  `)
})
