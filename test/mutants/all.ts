// `npm run test:mutants [text]`: breaks one rule at a time in a copy of the packages and expects a test to fail. With a
// text, only rules that contain it.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { MUTANTS } from './mutants.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const copy = mkdtempSync(join(tmpdir(), 'oxbow-mutants-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

copyTree()
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
  const { status, stdout } = spawnSync(
    join(root, 'node_modules/.bin/vitest'),
    ['run', '--bail=1', '--maxWorkers=2', ...tests],
    { cwd: copy, encoding: 'utf8' },
  )
  writeFileSync(path, source)
  // A run without tests, or that cannot load them, proves nothing.
  const caught = status !== 0 && /Tests .*\d+ failed/.test(stripVTControlCharacters(stdout))
  if (!caught) survivors.push(rule)
  console.log(`${caught ? '✓' : '✗'} ${rule}`)
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
