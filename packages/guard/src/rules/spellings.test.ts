import { describe, expect, test } from 'vitest'
import { commandMentions } from '../check/check-command.ts'

describe('a rule that denies means every spelling of a command', () => {
  test.each([
    ['rm', 'rm -rf x'],
    ['rm', 'rm'],
    ['rm -rf *', 'rm -fr x'],
    ['rm -rf *', 'rm -r -f x'],
    ['rm -rf *', 'rm x -rf'],
    ['rm -rf *', 'rm -Rf x'],
    ['rm -rf *', 'rm -rvf x'],
    ['rm -rf *', 'rm --recursive --force x'],
    ['rm -rf *', 'rm --rec -f x'],
    ['rm --recursive *', 'rm -r x'],
    ['rm -rf *', 'sudo rm -fr x'],
    ['git push', 'git push origin main'],
    ['git push --force *', 'git push --force'],
    ['git push --force *', 'git push origin --force'],
    ['git push --force *', 'git push -f origin'],
    ['git push --force *', 'git push origin main -f'],
    ['git push --force *', 'git push origin +main'],
    ['git push --force *', 'git -C x push origin -uf'],
    ['git push origin main', 'git push -u origin main'],
    ['git push origin main', 'git push origin topic main'],
    ['git reset --hard *', 'git reset HEAD~1 --hard'],
    ['npm install *', 'npm i x'],
    ['npm install *', 'npm add x'],
    ['npm install *', 'npm --prefix y install x'],
    ['npm i *', 'npm install x'],
    ['npm install -g *', 'npm i x --global'],
    ['npm publish', 'npm publ'],
    ['pnpm install *', 'pnpm i'],
    ['cargo run *', 'cargo r'],
    ['docker rm *', 'docker container rm x'],
    ['docker container rm *', 'docker rm x'],
    ['docker push *', 'docker image push x'],
    ['curl -X POST *', 'curl x --request=POST'],
    ['cat /etc/*', 'cat x /etc/passwd'],
    ['find * -delete', 'find . -name x -delete'],
    ['chmod -R *', 'chmod --recursive 777 x'],
    ['rm *', '/opt/tools/rm x'],
    ['rm *', '/usr//bin/rm x'],
    ['rm *', 'RM x'],
  ])('"%s" means "%s"', (pattern, text) => {
    expect(commandMentions(pattern, text)).toBe(true)
  })

  test.each([
    ['rm -rf *', 'rm $flags x'],
    ['curl -X POST *', 'curl -XPOST x'],
    ['git push --force *', 'git push --forc origin'],
    ['terraform apply --auto-approve *', 'terraform apply -a'],
    ['somewhat --yes *', 'somewhat -y'],
    ['somewhat -y *', 'somewhat --yes'],
  ])('"%s" may mean "%s"', (pattern, text) => {
    expect(commandMentions(pattern, text)).toBe('unknown')
  })

  test.each([
    ['rm -rf *', 'rm -f x'],
    ['rm -rf *', 'rm -r x'],
    ['rm -rf *', 'rm -- -rf'],
    ['git push --force *', 'git push origin main'],
    ['git push --force *', 'git push --force-with-lease'],
    ['git commit --amend *', 'git commit -a -m x'],
    ['git commit --amend *', 'git commit --all'],
    ['git push origin main', 'git push origin topic'],
    ['git reset --hard *', 'git reset HEAD'],
    ['npm install *', 'npm run install-x'],
    ['find * -delete', 'find . -depth -type l'],
    ['docker rm *', 'docker ps'],
  ])('"%s" does not mean "%s"', (pattern, text) => {
    expect(commandMentions(pattern, text)).toBe(false)
  })
})

describe('a program that a rule denies is found in disguise, so that the gate asks', () => {
  test.each([
    'choom -n 0 -- touch x',
    'man -P "touch x" ls',
    'uv run touch x',
    'docker exec web touch x',
    'kubectl exec pod -- touch x',
    'npm exec touch x',
    'poetry run touch x',
    'nonsense --with=touch x',
    'rlwrap -a touch x',
    'sort --compress-program=touch x',
    'git -c core.pager=touch log',
    'git submodule foreach touch x',
    'make SHELL=/usr/bin/touch',
    'choom -n 0 -- $program x',
    "x='a[$(touch y)]'; let x",
    'hash -p /bin/touch ls; ls x',
    "mapfile -C 'touch y' -c 1 a",
    "complete -C 'touch y' x",
    'enable -f ./evil.so evil',
  ])('%s', (text) => {
    expect(commandMentions('touch *', text, { cwd: '/', roots: [], shell: 'bash' })).not.toBe(false)
  })

  test.each([
    'grep touch x',
    'echo touch',
    'cp touch x',
    'git commit -m "touch it"',
    'ls src/touch',
    'pytest tests/touch/x.py',
    'make "$target"',
    './deploy.sh "$target"',
    'npm run build -- "$target"',
    'rm -rf "$directory"',
  ])('but not in %s', (text) => {
    expect(commandMentions('touch *', text, { cwd: '/', roots: [], shell: 'bash' })).toBe(false)
  })
})
