# Writes the commit of SOURCE to FILE if it changed: cmake -DSOURCE=... -DFILE=... -P commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=10 --exclude=* --dirty=+
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT "#define RICCI_COMMIT \"@commit@\"\n" @ONLY)
