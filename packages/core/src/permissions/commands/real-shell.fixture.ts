// What a real shell runs for a text: every program on its path is a stub that writes down how it was called.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { SimpleCommand } from './types.ts'

export const realShell = (name: 'bash' | 'dash'): string | undefined =>
  ['/bin', '/usr/bin', '/usr/local/bin'].map((it) => join(it, name)).find((it) => existsSync(it))

export interface StubShell {
  /** Runs the text in the folder and returns the calls of programs, as lists of words. */
  readonly run: (text: string, cwd: string, programs: readonly string[]) => readonly (readonly string[])[]
  readonly remove: () => void
}

export function stubShell(shell: string, home: string): StubShell {
  const folder = mkdtempSync(join(tmpdir(), 'oxbow-shell-'))
  const [stubs, log] = [join(folder, 'stubs'), join(folder, 'log')]
  for (const it of [stubs, log]) mkdirSync(it)
  return {
    run(text, cwd, programs) {
      for (const name of programs) {
        const file = join(stubs, name)
        if (!/^[\w.+-]+$/.test(name) || existsSync(file)) continue
        writeFileSync(file, '#!/bin/sh\n{ printf \'%s\\0\' "$0" "$@"; printf \'\\1\\0\'; } >> "$CALLS/$$"\n')
        chmodSync(file, 0o755)
      }
      spawnSync(shell, ['-c', text], { cwd, input: '', timeout: 5_000, env: { PATH: stubs, CALLS: log, HOME: home } })
      return readdirSync(log).flatMap((file) => {
        const records = readFileSync(join(log, file), 'utf8').split('\0\u0001\0').filter(Boolean)
        rmSync(join(log, file))
        return records.map((record) => record.split('\0').map((it, index) => (index === 0 ? basename(it) : it)))
      })
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** Whether the call is one of the listed commands, where a word that only the shell knows stands for any text. */
export const isListed = (call: readonly string[], commands: readonly SimpleCommand[]): boolean =>
  commands.some(({ words, written }) => {
    if (words.length > 0 && words[0]!.value === undefined) return true
    // The stub of a wrapper is called instead of what it would run.
    return [words, ...written.map((_, index) => written.slice(index))].some((list) => {
      const matches = (word: number, at: number): boolean => {
        const it = list[word]
        if (it === undefined) return at === call.length
        if (it.splits) return matches(word + 1, at) || (at < call.length && matches(word, at + 1))
        const given = call[at]
        if (given === undefined) return false
        const name = word === 0 && it.value !== undefined ? basename(it.value) : it.value
        const fits = name === undefined ? it.prefix === '0' || given.startsWith(it.prefix) || it.found : given === name
        return Boolean(fits) && matches(word + 1, at + 1)
      }
      return matches(0, 0)
    })
  })
