// Matches a path against the list of dangerous files.
import { matchesPieces } from '../pieces.ts'
import { DANGEROUS_FILES, type DangerousFiles } from './dangerous-files.ts'

export interface Danger {
  readonly kind: DangerousFiles['kind'] | 'device'
  readonly why: string
}

/**
 * Names are compared in the form that no look-alike survives: compatibility forms folded (full-width letters, ligatures),
 * accents composed, case folded, invisible characters and the dots, blanks and streams that Windows ignores removed. A
 * name that only looks dangerous is then called dangerous, which costs a question.
 */
const comparable = (segment: string): string =>
  segment
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{Cc}\p{Mn}]/gu, '')
    .toLowerCase()
    .replace(/::?\$?[a-z_]*$/, '')
    .replace(/[. ]+$/, '') || segment

interface Compiled {
  readonly rooted: boolean
  readonly below: boolean
  /** Each as its pieces between wildcards. */
  readonly segments: readonly (readonly string[])[]
  readonly except: readonly (readonly string[])[]
  readonly files: DangerousFiles
}

const piecesOf = (pattern: string): readonly string[] => pattern.split('*')

let compiled: readonly Compiled[] | undefined

const compile = (): readonly Compiled[] =>
  DANGEROUS_FILES.flatMap((files) => {
    const except = (files.except ?? []).map(piecesOf)
    return files.patterns.map((pattern) => {
      const rooted = pattern.startsWith('/')
      const below = pattern.endsWith('/**')
      const body = pattern.slice(rooted ? 1 : 0, below ? -3 : undefined)
      return { rooted, below, segments: body.split('/').map(piecesOf), except, files }
    })
  })

const matches = ({ rooted, below, segments, except }: Compiled, path: readonly string[], from: number): boolean => {
  if (except.some((it) => matchesPieces(it, path.at(-1) ?? ''))) return false
  const last = path.length - segments.length
  for (let start = rooted || below ? 0 : last; start <= (rooted ? 0 : last); start += 1) {
    if (start < 0 || start > last || start + segments.length <= from) continue
    if (rooted && !below && path.length !== segments.length) return false
    if (segments.every((segment, index) => matchesPieces(segment, path[start + index]!))) return true
  }
  return false
}

/**
 * Why it is dangerous to read or to write the file with these path segments (from the root of the volume), or
 * `undefined`. Writing covers everything that is dangerous to read. What matches within the first `from` segments alone
 * does not count: a workspace may itself lie in a folder such as `.claude/worktrees`.
 */
export function dangerOf(segments: readonly string[], access: 'read' | 'write', from = 0): Danger | undefined {
  compiled ??= compile()
  const path = segments.map(comparable)
  const found = compiled.find((it) => (access === 'write' || it.files.access === 'read') && matches(it, path, from))
  return found && { kind: found.files.kind, why: found.files.why }
}
