#!/usr/bin/perl
# No statements joined by commas, and no conditional operator within another, in the code of the product.
# The code is read as words and brackets: comments, literals and lines of the preprocessor are blanked first. As clang-format writes it, the
# < of template arguments is next to its name, and the one of a comparison is not.
use strict;
use warnings;

my $HEAD = qr/^(?:else\s+)?(?:if|if constexpr|for|while|switch|catch)\s*$/;
my $NAME = qr/[\w:]*\w/;

sub blank { my $text = shift; $text =~ s/[^\n]/ /g; return $text }

# The code alone, each line where it was.
sub code_of {
  my $text = shift;
  $text =~ s{(//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')}{my $found = $1; $found =~ m{^/[/*]} ? blank($found) : '0' . blank(substr($found, 1))}gse;
  $text =~ s{^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)}{blank($1)}gme;
  # Template arguments, which hold commas; those within others first.
  1 while $text =~ s{(\w)<([^<>;{}]*(?:\([^()]*\)[^<>;{}]*)*)>}{$1 . '_' . blank_word($2) . '_'}ge;
  $text =~ s{\[\[\w+\]\]|<<<|>>>}{blank($&)}ge;
  return $text;
}

# Of the same length, as a part of a name.
sub blank_word { my $text = shift; $text =~ s/[^\n]/_/g; return $text }

# Whether what stands before a { makes it a block: of a function, a lambda, a branch or a class.
sub opens_block {
  my ($before, $in_class) = @_;
  return 1 if $before =~ /^\s*$/ || $before =~ /(?:^|\W)(?:else|do|try)\s*$/;
  return 1 if $before =~ /^\s*(?:template_\w+\s+)?(?:inline\s+)?(?:namespace|struct|class|union|extern)\b/ && $before !~ /\)\s*$|=\s*$/;
  return 1 if $before =~ /[)\]]\s*(?:mutable|noexcept|const|override|final|&|\s)*(?:->[\w\s:<>&*]+)?$/ && $before !~ /=\s*[\w:]+\s*\[[^\]]*\]\s*$/;
  return 1 if $before =~ /:\s.*\}\s*$/s;  # after the members that a constructor begins with
  return 0;
}

# A list of members for a visitor: v("weight", weight), v("bias", bias).
sub visits { return $_[0] =~ /^\w\(\)(?:\s*,\s*(?:\w|\w+\.visit)\(\))+$/ }

# A statement that declares: words and marks of a type before a name.
sub declares {
  my $statement = shift;
  return 1 if $statement =~ /^(?:using|typedef|template|friend|namespace|enum|struct|class|union|static_assert|extern|goto)\b/;
  return 0 if $statement =~ /^(?:return|throw|delete|co_return|co_yield)\b/;
  return 1 if $statement =~ /^(?:(?:const|constexpr|constinit|static|inline|mutable|thread_local|unsigned|signed|volatile|explicit|virtual|auto)\b\s*)+/;
  return $statement =~ /^(?:typename\s+)?:{0,2}$NAME(?:\s+const\b)?\s*[&*\s]+(?:const\s+)?[&*]*\s*$NAME\s*(?:[=;,({\[:]|$)/ && $statement !~ /^$NAME\s*[&*]{1,2}\s*=/;
}

# faults_in FILE TEXT: lines FILE:LINE: and what was found.
sub faults_in {
  my ($file, $text) = ($_[0], code_of($_[1]));
  my ($line, @found) = (1);
  # Each open bracket: its kind, the statement around it and the commas of that; and how many conditional operators are open outside of it.
  my @open;
  my ($statement, $first, $comma, @asking) = ('', 1, 0);
  while ($text =~ /\G(\s+|\w+|::|->|.)/gs) {
    my $word = $1;
    if ($word =~ /^\s+$/) { $line += $word =~ tr/\n//; $statement .= ' '; next }
    $first = $line if $statement =~ /^\s*$/;
    if ($word =~ /^[(\[]$/) {
      push @open, {kind => ($statement =~ /(?:^|\W)(?:if|constexpr|for|while|switch|catch)\s*$/ && $word eq '(' ? 'head' : 'list'), statement => $statement, first => $first, comma => $comma, asking => [@asking]};
      ($statement, $comma) = ('', 0);
    } elsif ($word eq '{') {
      my $kind = opens_block($statement) ? 'block' : 'list';
      push @open, {kind => $kind, statement => $statement, first => $first, comma => $comma, asking => [@asking]};
      ($statement, $comma) = ('', 0);
      @asking = () if $kind eq 'block';
    } elsif ($word =~ /^[)\]}]$/) {
      my $was = pop @open or die "$file:$line: '$word' without its beginning\n";
      @asking = @{$was->{asking}};
      if ($was->{kind} eq 'head') {
        ($statement, $comma) = ('', 0);
      } elsif ($was->{kind} eq 'block' && (!@open || $open[-1]{kind} eq 'block') && $was->{statement} !~ /=|\breturn\b|[\w\])]\s*\[[^\]]*\]\s*(?:\(.*\))?\s*$/s) {
        ($statement, $comma) = ('', 0);
      } else {
        ($statement, $first, $comma) = ($was->{statement} . ($word eq ')' ? '()' : $word eq ']' ? '[]' : '{}'), $was->{first}, $was->{comma});
      }
    } elsif ($word eq ';') {
      if ($comma && (!@open || $open[-1]{kind} eq 'block')) {
        $statement =~ s/^\s+//;
        push @found, "$file:$first: statements joined by a comma\n" unless declares($statement) || visits($statement);
      }
      ($statement, $comma, @asking) = ('', 0);
    } elsif ($word eq '?') {
      push @found, "$file:$line: a conditional operator in another\n" if @asking;
      push @asking, scalar @open;
      $statement .= $word;
    } elsif ($word eq ',') {
      @asking = grep { $_ < @open } @asking;
      $comma = 1;
      $statement .= $word;
    } elsif ($word eq ':' && $statement =~ /^\s*(?:case\b|default\s*$|public\s*$|private\s*$|protected\s*$)/ && !@asking) {
      ($statement, $comma) = ('', 0);
    } elsif ($word =~ /^(?:else|do)$/) {
      ($statement, $comma) = ('', 0);
    } else {
      $statement .= $word;
    }
  }
  die "$file: a bracket without its end\n" if @open;
  return @found;
}

# In the sample the lines that end in //! are found, and only they.
my @sample = <DATA>;
my $expected = join ' ', grep { $sample[$_ - 1] =~ m{//!$} } 1 .. @sample;
my $found = join ' ', map { /:(\d+):/ } faults_in('sample', join '', @sample);
die "in the sample the lines $expected are expected, and $found were found\n" if $expected ne $found;

my $root = $0 =~ s{[^/]*$}{../..}r;
my @files = split /\n/, `cd "$root" && find core cuda autograd ops models data apps -name '*.cpp' -o -name '*.h' -o -name '*.cu' | sort`;
die "too few files were found\n" if @files <= 300;
my @faults = map { my $file = $_; open my $in, '<', "$root/$file" or die "$file: $!\n"; faults_in($file, do { local $/; <$in> }) } @files;
print @faults, scalar(@files), " files\n";
exit(@faults > 0);

__DATA__
#include <map>
#define PAIR a = 1, b = 2;
enum class Kind { one, two };
struct Both : First, Second {
  Both(int a, int b) : First(a), second{b}, third(a, b) {}
  int x = 0, y = 0;
  std::map<int, int> m, n;
  template <class A, class B> void visit(A&& v) { v("x", x), v("y", y), form.visit(v); }
  DimsInput optional(DimsInput in) { return in.x = 1, in; }  //!
};
using one::a, two::b;
const std::array<int, 2> kBoth{1, 2}, *kOther = nullptr;
int f(int a, int b) {
  for (int i = 0, j = 1; i < 3; ++i, ++j) g(i, j);
  a = 1, b = 2;  //!
  a = 1;
  b = a < 3, g(a, b > 4);  //!
  static_assert(std::is_same_v<A, B>, "a, b");
  auto [first, second] = h<int, double>(a, b), other = k();
  const auto each = [&](int i) { x = i, y = i; };  //!
  const auto wide = [&](int i, int j) -> std::pair<int, int> { return {i, j}; };
  if (a) a = 0, b = 0;  //!
  else a = 5;
  switch (a) {
    case 1: a = 2, b = 3; break;  //!
    default: g(1, 2);
  }
  Thing made{a, b}, more(a, b);
  unsigned long n = 1'000, m = 2;
  Tensor &p = a, *q = &b;
  run<Kernel><<<dim3(1), 2, 3>>>(a);
  const int c = a ? 1 : 2, d = b ? 3 : 4;
  g(a ? 1 : 2, b ? 3 : 4);
  const int e = a ? 1 : b ? 2 : 3;  //!
  const int o = a ? (b ? 1 : 2) : 3;  //!
  const auto p2 = a ? call([&] { return b ? 1 : 2; }) : 0;
  // a ? b : c ? d : e; and a = 1, b = 2;
  print("a ? b : c ? d : e, 'x'", '?', '"');
  return a ? 1 : 2;
}
