// Tests that may be skipped where CI is set. Everything else that is skipped there fails the run.

interface Allowed {
  /** How the title begins. */
  readonly title: string
  readonly reason: string
}

const ALLOWED: readonly Allowed[] = [
  {
    title: 'a folder that may not be read is reported',
    reason: 'No folder is closed to root, as which containers run.',
  },
  {
    title: 'each row of the list of oddities has a stream here',
    reason: 'The list is not part of the repository.',
  },
]

/** The report of vitest's JSON reporter, as far as it is read here. */
export interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly title: string; readonly fullName: string; readonly status: string }[]
  }[]
}

/** The tests that were skipped although nothing allows it. */
export const unexpectedSkips = ({ testResults }: Report): string[] =>
  testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status !== 'passed' && status !== 'failed')
      .filter(({ title }) => !ALLOWED.some((it) => title.startsWith(it.title)))
      .map(({ fullName }) => `${name}: ${fullName.trim()}`),
  )
