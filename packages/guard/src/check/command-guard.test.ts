import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { commandGuard } from './command-guard.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'oxbow-guard-')))
})
afterEach(() => rmSync(root, { recursive: true }))

const guard = () => commandGuard({ cwd: root, roots: [root], home: '/home/nobody', searchPath: '/usr/bin:/bin' })

test('what reads is allowed, a disaster is denied, the rest is left to rules and mode', () => {
  const check = (command: string, mode = 'default') => guard().check({ command }, { mode })?.decision
  expect(check('ls')).toBe('allow')
  expect(check('rm -rf /')).toBe('deny')
  expect(check('touch x')).toBeUndefined()
})

test('output may go to harmless files in the mode accept-edits only', () => {
  const check = (command: string, mode: string) => guard().check({ command }, { mode })?.decision
  expect(check('ls > out', 'accept-edits')).toBe('allow')
  for (const it of ['package.json', 'AGENTS.md', 'oxbow.toml', '.env'])
    expect([it, check(`ls > ${it}`, 'accept-edits')]).toEqual([it, undefined])
  for (const mode of ['default', 'explore', 'bypass', 'dont-ask']) expect(check('ls > out', mode)).toBeUndefined()
})

test('a command is parsed once per decision, and again for the next one', () => {
  const { matches } = guard()
  const first = { mode: 'default' }
  expect(matches('cat a.txt', { command: 'cat *.txt' }, 'allow', first)).toBe(false)
  writeFileSync(join(root, 'a.txt'), '')
  // The same decision keeps to what it has seen, for every rule; another one sees the file.
  expect(matches('cat a.txt', { command: 'cat *.txt' }, 'allow', first)).toBe(false)
  expect(matches('cat a.txt', { command: 'cat *.txt' }, 'allow', { mode: 'default' })).toBe(true)
  expect(matches('cat *', { command: 'rm x' }, 'deny', first)).toBe(false)
})

test('rules are checked for what they do, and exact commands are suggested', () => {
  const { checkPattern, suggest } = guard()
  expect(checkPattern('sudo *', 'deny')).toBeUndefined()
  expect(checkPattern('sudo *', 'allow')).toContain('runs another program')
  expect(suggest({ command: 'go test ./...' })).toEqual(['go test ./...'])
})
