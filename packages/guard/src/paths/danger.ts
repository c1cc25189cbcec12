// Matches a path against the list of dangerous files.
import { matchesPieces } from '../pieces.ts'
import { DANGEROUS_FILES, type DangerousFiles } from './dangerous-files.ts'

export interface Danger {
  readonly kind: DangerousFiles['kind'] | 'device'
  readonly why: string
}

/** Names that no folding changes but that of case. */
const PLAIN = /^[\x21-\x7e]+$/

/**
 * Names are compared in the form that no look-alike survives: compatibility forms folded (full-width letters,
 * ligatures), accents composed, case folded, invisible characters and the dots, blanks and streams that Windows ignores
 * removed. A name that only looks dangerous is then called dangerous, which costs a question.
 */
const comparable = (segment: string): string =>
  (PLAIN.test(segment)
    ? segment.toLowerCase()
    : segment
        .normalize('NFKC')
        .replace(/[\p{Cf}\p{Cc}\p{Mn}]/gu, '')
        .toLowerCase()
  )
    .replace(/::?\$?[a-z_]*$/, '')
    .replace(/[. ]+$/, '') || segment

interface Compiled {
  readonly rooted: boolean
  readonly below: boolean
  /** Each as its pieces between wildcards. */
  readonly segments: readonly (readonly string[])[]
  readonly except: readonly (readonly string[])[]
  readonly files: DangerousFiles
  /** The place in the list: the first match counts. */
  readonly order: number
}

interface Index {
  /** By a segment that has no wildcard. */
  readonly named: ReadonlyMap<string, readonly Compiled[]>
  /** Patterns with a wildcard in every segment. */
  readonly wild: readonly Compiled[]
}

const piecesOf = (pattern: string): readonly string[] => pattern.split('*')

let index: Index | undefined

function makeIndex(): Index {
  const compiled = DANGEROUS_FILES.flatMap((files) => {
    const except = (files.except ?? []).map(piecesOf)
    return files.patterns.map((pattern) => ({ pattern, except, files }))
  }).map(({ pattern, except, files }, order): Compiled => {
    const rooted = pattern.startsWith('/')
    const below = pattern.endsWith('/**')
    const body = pattern.slice(rooted ? 1 : 0, below ? -3 : undefined)
    return { rooted, below, segments: body.split('/').map(piecesOf), except, files, order }
  })
  const nameOf = ({ segments }: Compiled): string | undefined => segments.findLast((it) => it.length === 1)?.[0]
  const named = Map.groupBy(
    compiled.filter((it) => nameOf(it) !== undefined),
    (it) => nameOf(it)!,
  )
  return { named, wild: compiled.filter((it) => nameOf(it) === undefined) }
}

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
  index ??= makeIndex()
  const { named, wild } = index
  const path = segments.map(comparable)
  let found: Compiled | undefined
  const consider = (it: Compiled): void => {
    if (access !== 'write' && it.files.access !== 'read') return
    if ((found === undefined || it.order < found.order) && matches(it, path, from)) found = it
  }
  for (const segment of new Set(path)) named.get(segment)?.forEach(consider)
  wild.forEach(consider)
  return found && { kind: found.files.kind, why: found.files.why }
}
