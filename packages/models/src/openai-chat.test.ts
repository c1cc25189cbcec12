import { scriptedModel } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { openaiChat } from './index.ts'

test('a scripted answer comes as deltas and as one reply', async () => {
  const server = await scriptedModel({
    scripts: { '*': [{ thinking: 'hm', text: 'hello there', calls: [{ name: 'add', arguments: { a: 1 } }] }] },
  })
  const model = openaiChat({ provider: 'test', model: 'any', baseUrl: server.url, apiKey: 'k' })
  const deltas: unknown[] = []
  const reply = await model.generate(
    { system: 's', messages: [{ id: '1', role: 'user', blocks: [{ type: 'text', text: 'hi' }] }], tools: [] },
    { signal: new AbortController().signal, onDelta: (d) => deltas.push(d) },
  )
  expect(reply).toMatchInlineSnapshot(`
    {
      "blocks": [
        {
          "text": "hm",
          "type": "thinking",
        },
        {
          "text": "hello there",
          "type": "text",
        },
        {
          "arguments": "{"a":1}",
          "callId": "",
          "tool": "add",
          "type": "call",
        },
      ],
      "finishReason": "calls",
      "model": "any",
      "usage": {
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "estimated": false,
        "inputTokens": 10,
        "outputTokens": 5,
        "reasoningTokens": 0,
      },
    }
  `)
  expect(deltas).toMatchInlineSnapshot(`
    [
      {
        "block": 0,
        "text": "hm",
        "type": "thinking",
      },
      {
        "block": 1,
        "text": "hello",
        "type": "text",
      },
      {
        "block": 1,
        "text": " there",
        "type": "text",
      },
      {
        "block": 2,
        "tool": "add",
        "type": "call",
      },
      {
        "block": 2,
        "text": "{"a":1}",
        "type": "arguments",
      },
    ]
  `)
  server.assertDrained()
  await server.close()
})
