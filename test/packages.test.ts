import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('each package is published with its licence and a page, and without leftovers of the build', () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const told = execFileSync('npm', ['pack', '--workspaces', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const packages = JSON.parse(told.toString()) as { name: string; files: { path: string }[] }[]
  expect(packages.length).toBeGreaterThan(5)
  for (const { name, files } of packages) {
    const paths = files.map((it) => it.path)
    const missing = ['LICENSE', 'README.md', 'package.json'].filter((it) => !paths.includes(it))
    const leftovers = paths.filter((it) => /tsbuildinfo|\.(test|fixture)\./.test(it))
    expect({ name, missing, leftovers }).toEqual({ name, missing: [], leftovers: [] })
  }
})
