// The result of a command's analysis, as plain data.
import type { PathOptions } from '../paths/check-path.ts'

/** One word of a command after everything that can be known about its expansion. */
export interface Argument {
  /** As written. */
  readonly text: string
  /** The exact value; absent if only the shell will know it. */
  readonly value?: string
  /** The known beginning of the value. */
  readonly prefix: string
  /** May become no word or several words when the shell splits it. */
  readonly splits: boolean
  /** Stands for the path of a regular file that `find` met below a checked folder. */
  readonly found?: true
}

export interface Assigned {
  readonly name: string
  readonly value: Argument | undefined
  readonly text: string
}

export interface Redirected {
  readonly operator: string
  readonly text: string
  /** The files or descriptors that it may name; a here-document or here-string has none. */
  readonly targets: readonly Argument[]
}

/** One program that is started, or one builtin. */
export interface SimpleCommand {
  /** As written, with assignments and redirections. */
  readonly text: string
  /** The program and its arguments, without the wrappers around it. */
  readonly words: readonly Argument[]
  /** The words as written, with the wrappers in front. */
  readonly written: readonly Argument[]
  /** The index in `written` of the program of `words`. */
  readonly start: number
  readonly assignments: readonly Assigned[]
  readonly redirections: readonly Redirected[]
  /** The context of the program: wrappers (`timeout`, `sh -c`), substitutions, loops. Outermost first. */
  readonly via: readonly string[]
  /** Its standard input is the output of the command before it. */
  readonly piped: boolean
  /** The folders in which it may run; empty if that is not known. */
  readonly directories: readonly string[]
  /**
   * The text that was parsed out of an argument of this command (as of `sh -c`); its commands are in the list too.
   */
  readonly script?: string
}

/** Something that the analysis does not follow. A command that has one is never allowed. */
export interface Construct {
  readonly kind: string
  readonly text: string
  readonly why: string
}

/** Something that may wait for a person or never end. It decides nothing. */
export interface Unclear {
  readonly kind: 'interactive' | 'endless'
  readonly text: string
  readonly message: string
}

export interface Analysis {
  readonly simple: readonly SimpleCommand[]
  readonly unknown: readonly Construct[]
  /** Folders outside the roots whose names a pattern would list. */
  readonly outside: readonly string[]
  readonly notes: readonly Unclear[]
  /** More than one command, or a construct around it. */
  readonly compound: boolean
}

export type Shell = 'bash' | 'sh'

export interface AnalyseOptions
  extends Pick<PathOptions, 'cwd' | 'roots' | 'readOnlyRoots' | 'home' | 'caseInsensitive'> {
  /**
   * Which shell runs the text. `sh` means any POSIX shell: constructs that only bash reads its way are then not
   * understood. Default `'sh'`, the stricter. No other shell is covered; zsh and fish read many things in their own
   * way.
   */
  readonly shell?: Shell
  /** The shell reads commands from a terminal and so expands `!`. Default false. */
  readonly interactive?: boolean
}

export interface Reason {
  readonly decision: 'ask' | 'deny'
  readonly code:
    | 'construct'
    | 'too much'
    | 'not read-only'
    | 'option'
    | 'path'
    | 'dynamic'
    | 'assignment'
    | 'redirection'
    | 'disaster'
    | 'shadowed'
    | 'directory'
    | 'secret'
  readonly message: string
  /** The command or the part that it is about. */
  readonly text: string
}

export interface CommandOptions extends AnalyseOptions {
  /** Rules of the person, as people write them. Each command must be covered by one, or only read. */
  readonly allow?: readonly string[]
  /** Redirections into files of the roots need no question. Default false. */
  readonly allowEdits?: boolean
  /** Where the shell searches for programs. Default: `PATH` of this process. */
  readonly searchPath?: string
}

export interface CommandCheck {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** Allowed because it only reads, without the help of a rule or of `allowEdits`. */
  readonly readOnly: boolean
  /** Everything that speaks against the command, the weightiest first; empty if it is allowed. */
  readonly reasons: readonly Reason[]
  readonly simple: readonly SimpleCommand[]
  readonly unknown: readonly Construct[]
  readonly notes: readonly Unclear[]
  /** Rules that would allow it the next time, the narrowest first. */
  readonly suggestions: readonly string[]
}
