import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8')
const samples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!)

test.each(samples)('the README example runs', (sample) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--conditions=oxbow-source', '--input-type=module-typescript', '--eval', sample],
    { cwd: import.meta.dirname, encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined } },
  )
  expect(stderr + stdout).toContain('pass 1')
  expect(status).toBe(0)
})

test('the README has an example', () => {
  expect(samples).toHaveLength(1)
})
