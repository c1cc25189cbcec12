// `npm run test:mutants [text]`: breaks one rule at a time in a copy of the packages and expects a test to fail. With a
// text, only rules that contain it.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { killStartedBy } from '../../scripts/processes.ts'
import { MUTANTS } from './mutants.ts'

/** For the tests of one rule: many times what they take without the change. */
const LIMIT_MS = 300_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const copy = mkdtempSync(join(tmpdir(), 'oxbow-mutants-'))
/** The temporary folder of the tests: processes that a run leaves behind have it in their environment. */
const scratch = join(copy, 'tmp')
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

copyTree()
mkdirSync(scratch)
const chosen = MUTANTS.filter((it) => it.rule.includes(process.argv[2] ?? ''))
const survivors: string[] = []
for (const { rule, file, find, replace, tests } of chosen) {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  if (source.split(find).length !== 2) {
    survivors.push(rule)
    console.log(`✗ ${rule}: its text does not occur exactly once in ${file}. Update test/mutants/mutants.ts.`)
    continue
  }
  writeFileSync(
    path,
    source.replace(find, () => replace),
  )
  const { status, error, stdout } = spawnSync(
    join(root, 'node_modules/.bin/vitest'),
    ['run', '--bail=1', '--maxWorkers=2', ...tests],
    { cwd: copy, encoding: 'utf8', timeout: LIMIT_MS, env: { ...process.env, TMPDIR: scratch } },
  )
  if (error !== undefined) killStartedBy(process.pid, scratch)
  writeFileSync(path, source)
  // A run without tests, that cannot load them, or that does not end, proves nothing.
  const caught = status !== 0 && /Tests .*\d+ failed/.test(stripVTControlCharacters(stdout))
  if (!caught) survivors.push(rule)
  const why = error === undefined ? '' : `: its tests did not end within ${LIMIT_MS / 1_000} s`
  console.log(`${caught ? '✓' : '✗'} ${rule}${caught ? '' : why}`)
}
console.log(`${chosen.length - survivors.length} passed, ${survivors.length} failed`)
process.exitCode = survivors.length > 0 ? 1 : 0

/** Libraries are linked; our own packages are copies, in which a file may be changed. */
function copyTree(): void {
  for (const name of ['packages', 'test', 'vitest.config.ts', 'package.json', 'tsconfig.base.json', 'tsconfig.json'])
    cpSync(join(root, name), join(copy, name), {
      recursive: true,
      filter: (source) => !/\/(dist|node_modules)(\/|$)/.test(source.slice(root.length)),
    })
  const modules = join(root, 'node_modules')
  mkdirSync(join(copy, 'node_modules/@oxbow'), { recursive: true })
  for (const name of readdirSync(modules))
    if (name !== '@oxbow' && name !== 'oxbow') symlinkSync(join(modules, name), join(copy, 'node_modules', name))
  for (const name of readdirSync(join(root, 'packages')))
    symlinkSync(join(copy, 'packages', name), join(copy, 'node_modules', name === 'oxbow' ? name : `@oxbow/${name}`))
}
