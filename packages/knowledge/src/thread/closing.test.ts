import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { place } from '../helpers.fixture.ts'

test('close() during a search resolves even when nothing else keeps the process alive', async () => {
  const index = new URL('../index.ts', import.meta.url).href
  const script = `
    import { openKnowledge } from ${JSON.stringify(index)}
    const knowledge = openKnowledge({ path: ${JSON.stringify(place().index)} })
    knowledge.roots().catch(() => {})
    await knowledge.close()
    console.log('closed')`
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ['--conditions=oxbow-source', '--input-type=module', '-e', script])
  expect(stdout).toBe('closed\n')
})
