import { spawnScriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { ask, modelAt, text } from '../asking.fixture.ts'

test('an answer that arrived while this process was busy is not a timeout', async () => {
  const server = await spawnScriptedModel({ scripts: { '*': [{ text: 'one' }, { text: 'two', beforeHeaders: 50 }] } })
  onTestFinished(() => server.close())
  const model = modelAt(server, { timeouts: { firstByteMs: 100 } })
  // The first request opens the connection, so that the second is on its way after a few turns of the event loop.
  await ask(modelAt(server))
  const asked = ask(model)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  for (const end = performance.now() + 400; performance.now() < end; ) {}
  expect(text((await asked).reply)).toBe('two')
})
