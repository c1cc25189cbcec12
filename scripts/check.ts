// `npm test`, `npm run test:quick` and `npm run test:long`: one stage after the other, and one line of figures at the
// end.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Report, unexpectedSkips } from './skips.ts'
import { stageRunner } from './stages.ts'

interface Stage {
  readonly name: string
  readonly command: readonly string[]
}

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = (name: string): string => join(root, 'node_modules/.bin', name)
const script = (name: string, ...args: string[]): string[] => [
  process.execPath,
  '--conditions=oxbow-source',
  join(root, 'scripts', name),
  ...args,
]

const STATIC: readonly Stage[] = [
  { name: 'format and lint (biome)', command: [bin('biome'), 'ci', '--colors=off', '--error-on-warnings', '.'] },
  { name: 'lint (oxlint)', command: [bin('oxlint'), '--deny-warnings'] },
  { name: 'types', command: [bin('tsc'), '-p', '.'] },
  { name: 'types of the page of an example', command: [bin('tsc'), '-p', 'examples/use-chat'] },
]
const WHOLE: readonly Stage[] = [
  { name: 'unused files, exports and dependencies (knip)', command: [bin('knip')] },
  { name: 'generated files are up to date', command: script('generate.ts', '--check') },
  { name: 'build', command: script('build.ts') },
]

/** Packages and folders whose tests start no process and no service. */
const QUICK = [
  'packages/core/src/{checks,events,permissions,rows,tools}/',
  'packages/guard/src/',
  'packages/harness/src/compaction/',
  'packages/knowledge/src/text/',
  'packages/models/src/{accounting,catalogue,history}/',
  'packages/oxbow/src/usage.test.ts',
  'packages/server/src/config/',
]
const filters = QUICK.flatMap((it) => {
  const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(it) ?? []
  return names === undefined ? [it] : names.split(',').map((name) => `${before}${name}${after}`)
})

const MODES = {
  all: { stages: [...STATIC, ...WHOLE], tests: ['--project', 'short'] },
  quick: { stages: STATIC, tests: ['--project', 'short', ...filters] },
  long: { stages: [], tests: ['--project', 'long'] },
} as const satisfies Record<string, { stages: readonly Stage[]; tests: readonly string[] }>

const mode = process.argv[2] ?? 'all'
if (!Object.hasOwn(MODES, mode)) {
  console.error(`Unknown check "${mode}". Use one of: ${Object.keys(MODES).join(', ')}.`)
  process.exit(2)
}
const { stages, tests } = MODES[mode as keyof typeof MODES]

process.chdir(root)
const runner = stageRunner()
const report = join(runner.scratch, 'vitest.json')
const broken: string[] = []
// Each stage counts as one test, except the test run, which counts its own.
let passed = 0
let failed = 0
let skipped = 0

async function timed(name: string, command: readonly string[]): Promise<boolean> {
  const startedAt = performance.now()
  const ok = await runner.run(command)
  console.log(`${ok ? '✓' : '✗'} ${name} (${((performance.now() - startedAt) / 1_000).toFixed(1)} s)`)
  if (!ok) broken.push(name)
  return ok
}

for (const { name, command } of stages) {
  if (await timed(name, command)) passed += 1
  else failed += 1
}
const reporters = ['--reporter=default', '--reporter=json', `--outputFile=${report}`]
const tested = await timed('tests', [bin('vitest'), 'run', ...tests, ...reporters])
if (existsSync(report)) {
  const figures = JSON.parse(readFileSync(report, 'utf8')) as Report &
    Partial<Record<`num${'Passed' | 'Failed' | 'Pending' | 'Todo'}Tests`, number>>
  passed += figures.numPassedTests ?? 0
  failed += figures.numFailedTests ?? 0
  skipped += (figures.numPendingTests ?? 0) + (figures.numTodoTests ?? 0)
  // A file that cannot be loaded, or an error outside of a test, fails the run without failing a test.
  if (!tested && (figures.numFailedTests ?? 0) === 0) failed += 1
  // On a machine of a contributor a shell, a database or a client may be missing; where CI is set nothing may be.
  const unexpected = process.env.CI === undefined ? [] : unexpectedSkips(figures)
  if (unexpected.length > 0) {
    failed += unexpected.length
    skipped -= unexpected.length
    broken.push('tests were skipped')
    console.log(`Skipped, and not in scripts/skips.ts:\n  ${unexpected.join('\n  ')}`)
  }
} else failed += 1

const left = runner.close()
if (left.length > 0) {
  failed += 1
  broken.push('processes were left running')
  console.log(`Left running, and killed now:\n  ${left.join('\n  ')}`)
}
if (broken.length > 0) console.log(`Failed: ${broken.join(', ')}`)
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exit(failed > 0 ? 1 : 0)
