// What git and the managers of toolchains would find in the folders of a workspace. A repository, or a file that chooses a
// program, can be put there by anybody who may write ordinary files.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Settings whose value git runs, or that bring in others. `fsmonitor = true` is the built-in one. */
const RUNS =
  /^\s*(fsmonitor(?!\s*=\s*(true|false)\b)|sshcommand|gitproxy|pager|editor|textconv|external|command|hookspath|program|helper|askpass|driver|process|clean|smudge|cmd|uploadpack|receivepack|worktree)\s*=|^\s*\[\s*(include|includeif|alias|pager)\b/im

/**
 * Why git should not run in the folder: below the top of the workspace it would meet a repository whose settings start
 * programs, or a folder that it takes for a bare repository although nothing in its name says so. The repository at the top
 * is the person's own.
 */
export function riskyRepository(from: string, isTop: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const top = isTop(folder) || dirname(folder) === folder
    const own = join(folder, '.git')
    if (existsSync(own)) return top ? undefined : settingsProblem(own, folder)
    if (existsSync(join(folder, 'HEAD')) && isFolder(join(folder, 'objects')) && isFolder(join(folder, 'refs')))
      return `${folder} is a bare repository, and its settings can start programs.`
    if (top) return undefined
  }
}

function settingsProblem(own: string, folder: string): string | undefined {
  let place = own
  if (!isFolder(own)) {
    // A work tree or a submodule has a file that names the place.
    const named = /^gitdir: (.*)$/m.exec(text(own))?.[1]
    if (named === undefined) return `${own} is no repository.`
    place = resolve(folder, named.trim())
  }
  const common = text(join(place, 'commondir')).trim()
  const files = [
    join(place, 'config'),
    join(place, 'config.worktree'),
    ...(common === '' ? [] : [join(resolve(place, common), 'config')]),
  ]
  const risky = files.find((it) => RUNS.test(text(it)))
  return risky === undefined ? undefined : `${risky} has settings that start programs.`
}

/** A file between the folder and the top that puts a program of its own in the place of a toolchain's. */
export function chosenToolchain(from: string, isTop: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = ['rust-toolchain', 'rust-toolchain.toml', '.tool-versions']
      .map((it) => join(folder, it))
      .find((it) => /^\s*path\s*=|\bpath:/m.test(text(it)))
    if (found !== undefined) return `${found} chooses the program.`
    if (isTop(folder) || dirname(folder) === folder) return undefined
  }
}

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const text = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
