import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8')
const samples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!)

test('the README example runs without a key', () => {
  expect(samples).toHaveLength(1)
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--conditions=oxbow-source', '--input-type=module-typescript', '--eval', samples[0]!],
    { cwd: import.meta.dirname, encoding: 'utf8', env: { PATH: process.env.PATH } },
  )
  expect(stderr).toBe('')
  expect(stdout).toContain('offline:offline')
  expect(stdout).toContain('vllm:qwen3')
  expect(status).toBe(0)
})
