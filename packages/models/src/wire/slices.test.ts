// Bursts: the order of an answer, and what else the process does meanwhile.
import { spawnScriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { modelAt, text } from '../asking.fixture.ts'

const ANSWERS = 40
const FRAGMENTS = 1_000

test('bursts of many answers at once are read in order, and the event loop goes round meanwhile', async () => {
  const words = Array.from({ length: FRAGMENTS }, (_, n) => `${n} `).join('')
  const server = await spawnScriptedModel({ scripts: { '*': { always: { text: words, chunks: FRAGMENTS } } } })
  onTestFinished(() => server.close())
  let inThisRound = 0
  let longest = 0
  const nextRound = () => {
    longest = Math.max(longest, inThisRound)
    inThisRound = 0
    round = setImmediate(nextRound)
  }
  let round = setImmediate(nextRound)
  onTestFinished(() => clearImmediate(round))
  const onDelta = () => {
    inThisRound += 1
  }
  const replies = await Promise.all(
    Array.from({ length: ANSWERS }, () =>
      modelAt(server).generate(
        { system: '', messages: [], tools: [] },
        { signal: AbortSignal.timeout(30_000), onDelta },
      ),
    ),
  )
  for (const it of replies) expect(text(it)).toBe(words)
  expect(longest).toBeLessThan((ANSWERS * FRAGMENTS) / 10)
})
