// The scripted model of the benchmarks, in a process of its own: one tool call, then 200 fragments of text, one write
// per turn of the event loop.
import { scriptedModel } from '@oxbow/testing'

const text = Array.from({ length: 200 }, (_, n) => `word${n % 10} `).join('')

const server = await scriptedModel({
  oneWritePerTurn: true,
  chunkChars: 6,
  scripts: {
    '*': (request) =>
      request.messages.at(-1)?.role === 'tool'
        ? { text }
        : { calls: [{ name: 'lookup', arguments: { word: 'oxbow' } }] },
    payer: (request) => (request.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls: [{ name: 'pay' }] }),
  },
})
process.send?.({ url: server.url })
process.on('disconnect', () => process.exit(0))
