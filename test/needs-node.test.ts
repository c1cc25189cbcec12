import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../scripts/needs-node.cjs', import.meta.url))
const { complaint } = createRequire(import.meta.url)(script) as { complaint(version: string): string | undefined }

test('an old Node prints which version is needed; the pinned one does not', () => {
  for (const version of ['18.20.1', '20.19.0', '22.17.1'])
    expect(complaint(version)).toMatch(/Node 22\.18 .*nodejs\.org/)
  for (const version of ['22.18.0', '23.0.0', '24.22.3', '26.1.0']) expect(complaint(version)).toBeUndefined()
  expect(execFileSync(process.execPath, ['-r', script, '-p', '1']).toString()).toBe('1\n')
})

test('every entry point checks the Node version first', async () => {
  const { scripts } = createRequire(import.meta.url)('../package.json') as { scripts: Record<string, string> }
  for (const name of ['start', 'test', 'oxbow', 'example:tickets', 'example:access', 'example:chat'])
    expect(scripts[name]).toMatch(/^node -r \.\/scripts\/needs-node\.cjs /)
})
