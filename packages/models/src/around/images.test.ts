import type { Message, ModelRequest } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, serve, text, userMessage } from '../asking.fixture.ts'
import { resolveModel } from '../catalogue/environment.ts'

const png = { type: 'data', mediaType: 'image/png', data: 'aGk=', name: 'cat.png' } as const
const history: Message[] = [
  { id: 'u1', role: 'user', blocks: [{ type: 'text', text: 'Look.' }, png] },
  { id: 'a1', role: 'assistant', blocks: [{ type: 'call', callId: 'c1', tool: 'shot', arguments: '{}' }] },
  {
    id: 't1',
    role: 'tool',
    blocks: [{ type: 'result', callId: 'c1', tool: 'shot', status: 'success', content: [png] }],
  },
  userMessage('And now?'),
]
const seen: Partial<ModelRequest> = { messages: history }
const at = (url: string) => resolveModel('vllm:blind', { VLLM_BASE_URL: url })
const refusal = (message: string, status = 400) => ({ status, body: { error: { message } } })

describe('B1: images for a model that does not support them', () => {
  test.each([
    'Invalid content type. image_url is only supported by certain models.',
    'Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`',
    'blind is not a multimodal model',
    'At most 0 image(s) may be provided in one request.',
    "This model doesn't support the image content type.",
    'Image input is not enabled for this model',
  ])('become notes, in this request and in those after it: %s', async (message) => {
    const server = await serve(refusal(message), { text: 'one' }, { text: 'two' })
    const model = at(server.url)
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    expect(text((await ask(model, seen)).reply)).toBe('one')
    expect(text((await ask(model, seen)).reply)).toBe('two')
    expect((await warned).message).toMatch('vllm:blind does not support images')
    expect(server.requests).toHaveLength(3)
    for (const { messages } of server.requests.slice(1)) {
      const sent = JSON.stringify(messages)
      expect(sent).not.toContain('image_url')
      expect(sent.match(/\[file cat\.png image\/png\] You cannot see images\./g)).toHaveLength(2)
    }
  })

  test.each(['Image is too large: 9 MB exceeds 5 MB', 'Unsupported image format', 'temperature is not supported'])(
    'stay where something else is wrong: %s',
    async (message) => {
      const server = await serve(refusal(message), { text: 'no' })
      expect((await askInVain(at(server.url), seen)).error.code).toBe('invalid_request')
      expect(server.requests).toHaveLength(1)
    },
  )
})
