// What a streamed answer costs on our side, per chunk, when chunks come one per turn of the event loop. All ways run in
// turns in one process; the server is another one. Run from the repository's root:
//
//   node --conditions=oxbow-source packages/models/bench/sse.ts [rounds] [chunks] [ms between chunks]
import { openaiChat } from '@oxbow/models'
import { spawnScriptedModel } from '@oxbow/testing'
import { sseReader } from '../src/wire/sse.ts'

const [rounds = 30, chunks = 2_000, betweenChunks] = process.argv.slice(2).map(Number)

const server = await spawnScriptedModel({
  scripts: { '*': { always: { text: 'word '.repeat(chunks), ...(betweenChunks ? { betweenChunks } : {}) } } },
  oneWritePerTurn: true,
})
const model = openaiChat({ provider: 'bench', model: 'm', baseUrl: server.url, apiKey: 'k' })
const request = {
  system: 'You are terse.',
  messages: [{ id: '1', role: 'user' as const, blocks: [{ type: 'text' as const, text: 'Say it.' }] }],
  tools: [],
}
const open = async (): Promise<ReadableStream<Uint8Array>> => {
  const response = await fetch(`${server.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'Say it.' }],
    }),
  })
  return response.body!
}

let received = 0
let reads = 0
const take = (data: string) => {
  if (data === '[DONE]') return
  const text = JSON.parse(data).choices[0]?.delta?.content
  if (text) received += text.length
}

/** fetch, one decoder, JSON.parse, and as little as possible between them; right for this server only. */
const bareLines = (onData: (data: string) => void) => {
  const decoder = new TextDecoder()
  let rest = ''
  return (bytes: Uint8Array) => {
    const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
    rest = events.pop()!
    for (const event of events) onData(event.slice(6))
  }
}
const byReader = async (push: (bytes: Uint8Array) => void) => {
  const reader = (await open()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    reads++
    push(value)
  }
}
const byForAwait = async (push: (bytes: Uint8Array) => void) => {
  for await (const value of await open()) {
    reads++
    push(value)
  }
}
const ways: Record<string, () => Promise<unknown>> = {
  'bare loop, reader': () => byReader(bareLines(take)),
  'bare loop, for await': () => byForAwait(bareLines(take)),
  'standard SSE, reader': () => byReader(sseReader(take).push),
  'the driver': () =>
    model.generate(request, {
      signal: new AbortController().signal,
      onDelta: (delta) => {
        if (delta.type === 'text') received += delta.text.length
      },
    }),
}

const samples = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]))
for (let round = -5; round < rounds; round++) {
  for (const [name, run] of Object.entries(ways)) {
    received = 0
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    if (received < 5 * chunks - 1) throw new Error(`${name} received ${received}`)
    if (round >= 0) samples.get(name)!.push((user + system) / chunks)
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const base = median(samples.get('bare loop, reader')!)
for (const [name, values] of samples) {
  const cost = median(values)
  console.log(
    `${name.padEnd(28)} ${cost.toFixed(2).padStart(7)} µs per chunk   ${(cost / base).toFixed(3)} of the bare loop`,
  )
}
console.log(`${(reads / (3 * (rounds + 5)) / chunks).toFixed(2)} reads per chunk`)
await server.close()
