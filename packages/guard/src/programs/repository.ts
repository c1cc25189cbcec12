// Files that git and toolchain managers would find in the folders of a workspace. A repository, or a file that
// chooses a program, can be put there by anybody who may write ordinary files.
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { WorkBudget } from '../budget.ts'

/**
 * Settings that neither name a program nor lead to one. Everything else in the settings of a repository below the top
 * of the workspace is a risk: git has dozens of settings whose value it runs, and each version has more.
 */
const HARMLESS: readonly (readonly [section: RegExp, keys: RegExp])[] = [
  [
    /^core$/,
    /^(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath|untrackedcache|abbrev|compression|bigfilethreshold)$/,
  ],
  [/^extensions$/, /^(objectformat|worktreeconfig|partialclone)$/],
  [/^remote .*$/, /^(url|pushurl|fetch|push|tagopt|prune|promisor|partialclonefilter)$/],
  [/^branch .*$/, /^(remote|merge|rebase|description|pushremote)$/],
  [/^submodule( .*)?$/, /^(active|url|branch|ignore|recurse)$/],
  [/^user$/, /^(name|email)$/],
  [/^init$/, /^defaultbranch$/],
  [/^pull$/, /^(rebase|ff)$/],
  [/^push$/, /^(default|followtags)$/],
  [/^gc$|^fetch$|^index$|^feature$/, /^\w+$/],
]

/** Why the text is more than settings that are known to be harmless, or nothing. */
function riskySetting(config: string): string | undefined {
  let section = ''
  for (const line of config.replaceAll('\r\n', '\n').split('\n')) {
    let rest = line.trim()
    const header = /^\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest)
    if (header !== null) {
      section = `${header[1]!.toLowerCase()}${header[2] === undefined ? '' : ` ${header[2]}`}`
      rest = rest.slice(header[0].length).trim()
    }
    if (rest === '' || /^[#;]/.test(rest)) continue
    const key = /^([A-Za-z][\w-]*)\s*(=|$)/.exec(rest)?.[1]?.toLowerCase()
    // Continuation lines are not supported here.
    if (key === undefined || rest.endsWith('\\')) return rest
    if (!HARMLESS.some(([sections, keys]) => sections.test(section) && keys.test(key))) return `${section}.${key}`
    // `ext::` runs what follows it.
    if (/^(url|pushurl)$/.test(key) && /=\s*"?[\w-]+::/.test(rest)) return `${section}.${key}`
  }
  return undefined
}

/**
 * Why git should not run in the folder: below the top of the workspace it would meet a repository whose settings or
 * hooks start programs, or a folder that it treats as a bare repository although nothing in its name says so. The
 * repository at the top is the person's own.
 *
 * @param from the real folder, which git sees whatever the link is called that led there
 */
export function riskyRepository(
  from: string,
  isTop: (folder: string) => boolean,
  { spend }: WorkBudget,
): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    spend('folders')
    const top = isTop(folder) || dirname(folder) === folder
    const own = join(folder, '.git')
    if (exists(own)) return top ? undefined : settingsProblem(own, folder)
    // With `commondir` the objects and the settings may be elsewhere.
    if (exists(join(folder, 'HEAD')) && ['commondir', 'objects', 'refs'].some((it) => exists(join(folder, it))))
      return `${folder} is a bare repository, and its settings can start programs.`
    if (top) return undefined
  }
}

function settingsProblem(own: string, folder: string): string | undefined {
  let place = own
  if (!isFolder(own)) {
    // A work tree or a submodule has a file that names the place.
    const named = /^gitdir: (.*)$/m.exec(text(own))?.[1]
    if (named === undefined) return `${own} is not a repository.`
    place = resolve(folder, named.trim())
  }
  const common = text(join(place, 'commondir')).trim()
  const shared = common === '' ? place : resolve(place, common)
  for (const file of [join(place, 'config'), join(place, 'config.worktree'), join(shared, 'config')]) {
    const setting = riskySetting(text(file))
    if (setting !== undefined) return `${file} has a setting that may start a program: ${setting}.`
  }
  for (const hooks of new Set([join(place, 'hooks'), join(shared, 'hooks')])) {
    const hook = names(hooks).find((it) => !it.endsWith('.sample'))
    if (hook !== undefined) return `${join(hooks, hook)} is a hook, which git runs.`
  }
  return undefined
}

/**
 * Whether the settings of the repository around a folder hold a password, in the address of a remote or as a header.
 */
export function holdsCredentials(from: string, isTop: (folder: string) => boolean): boolean {
  for (let folder = from; ; folder = dirname(folder)) {
    const own = join(folder, '.git')
    if (exists(own)) return /:\/\/[^/\s@]+@|extraheader|token|password|helper/i.test(text(join(own, 'config')))
    if (isTop(folder) || dirname(folder) === folder) return false
  }
}

/** A file between the folder and the top that replaces a program of a toolchain. */
export function chosenToolchain(from: string, isTop: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = ['rust-toolchain', 'rust-toolchain.toml', '.tool-versions']
      .map((it) => join(folder, it))
      .find((it) => /^\s*path\s*=|\bpath:/m.test(text(it)))
    if (found !== undefined) return `${found} chooses the program.`
    if (isTop(folder) || dirname(folder) === folder) return undefined
  }
}

/** Even for a dangling link: git reads the text of the link. */
const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

const names = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder)
  } catch {
    return []
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
