// The published packages, as a user has them: packed, installed from the tarballs into an empty project, compiled and
// run.
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

interface Packed {
  readonly name: string
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

const MEGABYTE = 1_000_000
const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'oxbow-packages-'))
let packed: readonly Packed[] = []

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** A new project that has only these packages. What the registry offers comes from npm's cache where it can. */
function project(name: string, packages: readonly string[]): string {
  const directory = join(scratch, name)
  mkdirSync(directory)
  const tarballs = new Map(packed.map((it) => [it.name, `file:${join(scratch, it.filename)}`]))
  const wanted = packages.map((it) => [it, tarballs.get(it) ?? versionHere(it)])
  // Oxbow's packages come from the tarballs, even as dependencies of each other.
  const json = { private: true, type: 'module', dependencies: Object.fromEntries(wanted), overrides: {} }
  json.overrides = Object.fromEntries([...tarballs].filter(([it]) => !packages.includes(it)))
  writeFileSync(join(directory, 'package.json'), JSON.stringify(json))
  run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'], directory)
  return directory
}

const versionHere = (name: string): string =>
  (JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }).version

function installed(directory: string): { names: string[]; bytes: number } {
  const modules = join(directory, 'node_modules')
  const names = globSync(['*/package.json', '@*/*/package.json'], { cwd: modules }).map((it) => it.slice(0, -13))
  const files = globSync('**', { cwd: modules, withFileTypes: true }).filter((it) => it.isFile())
  const bytes = files.reduce((sum, it) => sum + statSync(join(it.parentPath, it.name)).size, 0)
  return { names: names.filter((it) => !it.startsWith('.')).toSorted(), bytes }
}

/** Every entry of Oxbow's packages, as imported. */
function entriesOf(directory: string, name: string): string[] {
  const manifest = readFileSync(join(directory, 'node_modules', name, 'package.json'), 'utf8')
  const { exports } = JSON.parse(manifest) as { exports: Record<string, unknown> }
  return Object.keys(exports).map((it) => name + it.slice(1))
}

beforeAll(() => {
  // Always: an old build would be tested otherwise.
  run('npm', ['run', 'build'], root)
  const args = ['pack', '--workspaces', '--json', '--ignore-scripts', '--pack-destination', scratch]
  packed = JSON.parse(run('npm', args, root)) as Packed[]
}, 120_000)
afterAll(() => rmSync(scratch, { recursive: true }), 120_000)

test('each package is published with its licence and a page, and without leftovers of the build', () => {
  expect(packed.length).toBeGreaterThan(5)
  for (const { name, files } of packed) {
    const paths = files.map((it) => it.path)
    const missing = ['LICENSE', 'README.md', 'package.json'].filter((it) => !paths.includes(it))
    // A source map would point to sources that are not in the package.
    const leftovers = paths.filter((it) => /tsbuildinfo|\.(test|fixture)\.|\.map$/.test(it))
    expect({ name, missing, leftovers }).toEqual({ name, missing: [], leftovers: [] })
  }
})

test('@oxbow/core brings at most 6 packages and 10 MB, and runs with them', { timeout: 120_000 }, () => {
  const directory = project('core', ['@oxbow/core'])
  const { names, bytes } = installed(directory)
  expect(names).toContain('@oxbow/core')
  expect(names.length).toBeLessThanOrEqual(6)
  expect(bytes).toBeLessThan(10 * MEGABYTE)
  // JSON Schema is checked by what the package contains; what is optional says what to install.
  const script = `
    import { rowFilter } from '@oxbow/core'
    import { validatorFor } from '@oxbow/core/internal'
    const validate = await validatorFor({ type: 'object', required: ['id'] }, 'test')
    const missing = await rowFilter({ principal: { user: 'ann' } }, { owner: 'by' }).catch((it) => it.code + ': ' + it.message)
    console.log(JSON.stringify([validate({ id: 1 }), validate({}), missing]))`
  const printed = run(process.execPath, ['--input-type=module', '-e', script], directory)
  const missing = 'package_missing: rowFilter() needs an optional package. Run: npm install @casl/ability@7'
  expect(JSON.parse(printed)).toEqual([true, false, missing])
})

test('oxbow brings no second Node and at most 60 MB, answers, and loads no service', { timeout: 180_000 }, () => {
  const directory = project('library', ['oxbow'])
  const { names, bytes } = installed(directory)
  expect(names.filter((it) => /^node($|-)|opentelemetry\/(sdk|exporter)/.test(it))).toEqual([])
  expect(bytes).toBeLessThan(60 * MEGABYTE)
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({ load(url, context, next) { loaded.add(/.*node_modules.(.*)/.exec(url)?.[1]); return next(url, context) } })
    const { agent, createEngine, memory, offline } = await import('oxbow')
    const before = [...loaded]
    const engine = createEngine({ backend: memory(), agents: [agent({ name: 'a', model: offline(), instructions: 'Help.' })] })
    const { status } = await engine.session({ user: 'ann' }).run('Hello')
    await engine.stop()
    console.log(JSON.stringify([status, before]))`
  const [status, loaded] = JSON.parse(run(process.execPath, ['--input-type=module', '-e', script], directory)) as [
    string,
    string[],
  ]
  expect(status).toBe('finished')
  expect(loaded).toContain('@oxbow/core/dist/index.js')
  const heavy =
    /^(@oxbow\/server\/dist\/index|@modelcontextprotocol|@opentelemetry|@ag-ui|zod|hono|@hono|ajv|pino|unpdf)/
  expect(loaded.filter((it) => heavy.test(it ?? ''))).toEqual([])
  // The command line finds what it needs.
  expect(run(join(directory, 'node_modules/.bin/oxbow'), ['run', '-p', 'What is 17 * 23?'], directory)).toContain('391')
})

test('every entry compiles with all strict flags and skipLibCheck off', { timeout: 180_000 }, () => {
  const ours = packed.map((it) => it.name)
  const directory = project('types', [...ours, '@types/node'])
  const entries = ours.flatMap((it) => entriesOf(directory, it))
  expect(entries.length).toBeGreaterThan(ours.length)
  const imports = entries.map((it, n) => `import * as entry${n} from '${it}'`)
  const all = entries.map((_, n) => `entry${n}`).join(', ')
  writeFileSync(join(directory, 'all.ts'), `${imports.join('\n')}\nexport const all: unknown[] = [${all}]\n`)
  const flags =
    'strict exactOptionalPropertyTypes noUncheckedIndexedAccess noPropertyAccessFromIndexSignature noImplicitOverride ' +
    'noImplicitReturns noUnusedLocals noUnusedParameters verbatimModuleSyntax isolatedModules ' +
    'noFallthroughCasesInSwitch noUncheckedSideEffectImports'
  const compilerOptions = {
    ...Object.fromEntries(flags.split(' ').map((it) => [it, true])),
    allowUnreachableCode: false,
    skipLibCheck: false,
    noEmit: true,
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable', 'esnext.iterator'],
    module: 'nodenext',
    types: ['node'],
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }))
  const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', directory, '--pretty', 'false'])
  expect(stdout.toString()).toBe('')
})
