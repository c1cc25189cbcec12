import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../scripts/needs-node.cjs', import.meta.url))
const folder = fileURLToPath(new URL('../packages/oxbow', import.meta.url))
const names = [
  'oxbow',
  'oxbow/service',
  ...['core', 'core/internal', 'backends', 'models', 'harness', 'server', 'server/response'].map(
    (it) => `@oxbow/${it}`,
  ),
]
const { complaint } = createRequire(import.meta.url)(script) as { complaint(version: string): string | undefined }

test('an old Node prints which version is needed; the pinned one does not', () => {
  for (const version of ['18.20.1', '20.19.0', '22.17.1'])
    expect(complaint(version)).toMatch(/Node 22\.18 .*nodejs\.org/)
  for (const version of ['22.18.0', '23.0.0', '24.22.3', '26.1.0']) expect(complaint(version)).toBeUndefined()
  expect(execFileSync(process.execPath, ['-r', script, '-p', '1']).toString()).toBe('1\n')
})

test('importing a package on an old Node says which version is needed', () => {
  // What an old Node lacks is missing here too.
  const program = `
    Object.defineProperty(process.versions, 'node', { value: '20.19.0' })
    const { registerHooks } = require('node:module')
    const old = "const it = process.getBuiltinModule('module'); export default it; export const { createRequire } = it"
    registerHooks({ resolve(name, context, next) {
      if (name === 'node:sqlite') throw new Error('No such built-in module: node:sqlite')
      if (name === 'node:module') return { url: 'data:text/javascript,' + old, shortCircuit: true }
      return next(name, context)
    } })
    Promise.all(${JSON.stringify(names)}.map((it) => import(it).then(() => 'loaded', (error) => error.message)))
      .then((said) => console.log(JSON.stringify(said)))`
  const said = execFileSync(process.execPath, ['-C', 'oxbow-source', '-e', program], { cwd: folder, encoding: 'utf8' })
  const message = 'Oxbow needs Node 22.18 or newer; this is 20.19.0. Install it from https://nodejs.org.'
  expect(JSON.parse(said)).toEqual(names.map(() => message))
})

test('every entry point checks the Node version first', async () => {
  const { scripts } = createRequire(import.meta.url)('../package.json') as { scripts: Record<string, string> }
  for (const name of ['start', 'test', 'oxbow', 'example:tickets', 'example:access', 'example:chat'])
    expect(scripts[name]).toMatch(/^node -r \.\/scripts\/needs-node\.cjs /)
})
