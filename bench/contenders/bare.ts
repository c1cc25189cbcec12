// The least that could work: fetch, a line splitter, JSON.parse. Nothing is stored, nothing is checked.
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

interface Chunk {
  choices: {
    delta: { content?: string; tool_calls?: { id?: string; function: { name?: string; arguments?: string } }[] }
  }[]
}

const tools = [
  {
    type: 'function',
    function: {
      name: 'lookup',
      description: 'Looks a word up.',
      parameters: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
    },
  },
]

export const start: StartContender = async ({ url }) => ({
  async turn() {
    const startedAt = performance.now()
    let firstTextMs = 0
    const messages: unknown[] = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: QUESTION },
    ]
    for (;;) {
      const response = await fetch(`${url}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'bench',
          stream: true,
          stream_options: { include_usage: true },
          messages,
          tools,
        }),
      })
      const decoder = new TextDecoder()
      let rest = ''
      let text = ''
      const call = { id: '', name: '', arguments: '' }
      for await (const bytes of response.body!) {
        rest += decoder.decode(bytes, { stream: true })
        const lines = rest.split('\n')
        rest = lines.pop()!
        for (const line of lines) {
          if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
          const delta = (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta
          if (delta?.content) {
            firstTextMs ||= performance.now() - startedAt
            text += delta.content
          }
          for (const part of delta?.tool_calls ?? []) {
            call.id ||= part.id ?? ''
            call.name ||= part.function.name ?? ''
            call.arguments += part.function.arguments ?? ''
          }
        }
      }
      if (call.name === '') return { firstTextMs, characters: text.length }
      const { word } = JSON.parse(call.arguments) as { word: string }
      messages.push(
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }],
        },
        { role: 'tool', tool_call_id: call.id, content: lookup(word) },
      )
    }
  },
  async close() {},
})
