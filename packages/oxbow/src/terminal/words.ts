// How the command line describes the end or pause of a turn, and the command that resumes it.

/** Why a turn ended or paused, as a clause. */
const REASONS: Readonly<Record<string, string>> = {
  max_steps: 'it reached the step limit before it was done (agent.maxSteps)',
  length: 'the answer reached the length limit (agent.maxOutputTokens, or the limit of the model)',
  filtered: 'the provider’s content filter blocked the answer',
  refusal: 'the model refused to answer',
  external: 'it is waiting for the result of an external call',
  approval: 'it is waiting for an approval',
  signal: 'it is waiting for a signal',
  sleep: 'a tool is sleeping; the turn continues by itself',
  manual: 'it was paused manually',
  recovery_limit: 'it was interrupted too often and is parked',
}

export const reasonInWords = (reason: string): string => REASONS[reason] ?? reason

/** Turns that only `oxbow sessions release` resumes. */
export const isReleasable = (reason: string): boolean => reason === 'manual' || reason === 'recovery_limit'

interface Where {
  readonly user: string
  readonly store?: string | undefined
  readonly model?: string | undefined
}

/** A command for the same session with the same model: it repeats the options of this one. */
export function commandLine(command: string, { user, store, model }: Where): string {
  const options = { user: user === 'default' ? undefined : user, store, model }
  return Object.entries(options).reduce(
    (line, [name, value]) => (value === undefined ? line : `${line} --${name} ${quoted(value)}`),
    `oxbow ${command}`,
  )
}

const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
