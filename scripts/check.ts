// `npm test`: everything that must hold, one stage after the other, and one line of figures at the end.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const scratch = mkdtempSync(join(tmpdir(), 'oxbow-check-'))
const report = join(scratch, 'vitest.json')

/** Each stage counts as one test, except the test run, which counts its own. */
const stages: readonly { name: string; command: readonly string[] }[] = [
  { name: 'format and lint (biome)', command: ['biome', 'ci', '--colors=off', '--error-on-warnings', '.'] },
  { name: 'lint (oxlint)', command: ['oxlint', '--deny-warnings'] },
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'types of the page of an example', command: ['tsc', '-p', 'examples/use-chat'] },
  { name: 'unused files, exports and dependencies (knip)', command: ['knip'] },
  { name: 'generated files are up to date', command: ['node', '-C', 'oxbow-source', 'scripts/generate.ts', '--check'] },
  { name: 'build', command: ['tsc', '-b', 'tsconfig.build.json'] },
]

const run = (command: readonly string[]): boolean => {
  const { status } = spawnSync('npx', ['--no-install', ...command], { stdio: 'inherit' })
  return status === 0
}

let passed = 0
let failed = 0
let skipped = 0
const broken: string[] = []
for (const { name, command } of stages) {
  const startedAt = performance.now()
  const ok = run(command)
  console.log(`${ok ? '✓' : '✗'} ${name} (${((performance.now() - startedAt) / 1_000).toFixed(1)} s)`)
  if (ok) passed += 1
  else {
    failed += 1
    broken.push(name)
  }
}

const tested = run(['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile=${report}`])
try {
  const figures = JSON.parse(readFileSync(report, 'utf8')) as Record<string, number>
  passed += figures.numPassedTests ?? 0
  failed += figures.numFailedTests ?? 0
  skipped += (figures.numPendingTests ?? 0) + (figures.numTodoTests ?? 0)
  // A file that cannot be loaded, or an error outside of a test, fails the run without failing a test.
  if (!tested && (figures.numFailedTests ?? 0) === 0) failed += 1
} catch {
  failed += 1
  broken.push('the test run wrote no report')
}
rmSync(scratch, { recursive: true })

if (broken.length > 0) console.log(`Failed stages: ${broken.join(', ')}`)
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 ? 1 : 0
