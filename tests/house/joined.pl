# Finds statements that are joined by commas and conditional operators within conditional operators: joined.pl FILE ...
# Prints FILE:LINE: and what was found. The code is read as words and brackets: comments, literals and lines of the preprocessor are
# blanked first. As clang-format writes it, the < of template arguments stands at its name, and the one of a comparison does not.
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

for my $file (@ARGV) {
  open my $in, '<', $file or die "$file: $!\n";
  my $text = code_of(do { local $/; <$in> });
  my $line = 1;
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
        print "$file:$first: statements joined by a comma\n" unless declares($statement) || visits($statement);
      }
      ($statement, $comma, @asking) = ('', 0);
    } elsif ($word eq '?') {
      print "$file:$line: a conditional operator in another\n" if @asking;
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
}
